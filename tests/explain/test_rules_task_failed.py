"""Which task of a step failed first, and when that is no news."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import NodePart, figures, found, judged, scenario, step, task
from teho.explain.rules import task_failed
from teho.model.finding import Severity
from teho.model.run import Clock


def made(*tasks, count=None, scheduler="slurm", clock=None):
    hosts = ("a", "b")
    parts = (
        NodePart("a", scheduler=scheduler),
        NodePart("b", scheduler=scheduler, clock=clock),
    )
    return scenario(*parts, step=step(count or len(tasks), *hosts), tasks=tasks)


def test_killed_beside_others_that_ended_well():
    tasks = [task(rank, "ab"[rank // 4]) for rank in range(8)]
    tasks[5] = task(5, "b", after_s=720.0, signal=9)
    finding = found(task_failed, made(*tasks))
    assert finding.sentence == (
        "Rank 5 on b was ended by SIGKILL after 12 min; the other 7 tasks exited with 0."
    )
    assert finding.severity is Severity.CRITICAL
    assert figures(finding) == {
        "ended first": "rank 5 on b",
        "how": "by SIGKILL",
        "after": 720.0,
        "tasks that failed": 1.0,
        "tasks that succeeded": 7.0,
        "tasks of the step": 8.0,
    }
    assert "`sacct -j 4711 -o JobID,State,ExitCode,MaxRSS` may tell" in finding.action


def test_what_the_others_do_after_it_is_told():
    sentence = found(task_failed, scenarios.one_task_killed()).sentence
    assert sentence == (
        "Rank 5 on r01g02 was ended by SIGKILL after 24 min; of the other 7 tasks 6 failed too "
        "and 1 told no end."
    )


def test_an_exit_code():
    tasks = [task(0, "a", after_s=60.0, exit_code=3), task(1, "b", after_s=90.0, exit_code=1)]
    finding = found(task_failed, made(*tasks))
    assert finding.sentence == ("Rank 0 on a exited with 3 after 1 min; the other task failed too.")
    assert "Begin with what rank 0 wrote last" in finding.action
    assert "`srun --output=job-%j-%t.log`" in finding.action


def test_several_on_one_node():
    tasks = [task(rank, "a") for rank in range(3)]
    tasks += [task(rank, "b", after_s=60.0, signal=11) for rank in range(3, 6)]
    assert found(task_failed, made(*tasks)).sentence == (
        "Ranks 3–5 on b were ended by SIGSEGV after 1 min; the other 3 tasks exited with 0."
    )


@pytest.mark.parametrize(("later_s", "named"), [(1.0, None), (1.1, "Rank 0 on a exited")])
def test_threshold_of_first(later_s, named):
    tasks = [task(0, "a", after_s=60.0, exit_code=1),
             task(1, "b", after_s=60.0 + later_s, exit_code=1)]  # fmt: skip
    verdict = judged(task_failed, made(*tasks))
    assert [finding.sentence[:18] for finding in verdict] == ([named] if named else [])


def test_clocks_that_are_not_sure_name_nobody():
    clock = Clock(ahead_s=100.0, uncertainty_s=2.0)
    tasks = [task(0, "a", after_s=60.0, exit_code=1), task(1, "b", after_s=164.0, exit_code=1)]
    assert judged(task_failed, made(*tasks, clock=clock)) == []


def test_the_first_goes_by_the_run_s_clock():
    clock = Clock(ahead_s=100.0, uncertainty_s=0.01)
    tasks = [task(0, "a", after_s=60.0, exit_code=1), task(1, "b", after_s=130.0, exit_code=2)]
    sentence = found(task_failed, made(*tasks, clock=clock)).sentence
    assert sentence.startswith("Rank 1 on b exited with 2 after 30.0 s")


def test_at_the_same_moment_the_odd_one_is_named():
    tasks = [task(rank, "a", after_s=60.0, exit_code=1) for rank in range(7)]
    tasks.append(task(7, "b", after_s=60.4, signal=6))
    assert found(task_failed, made(*tasks)).sentence == (
        "Rank 7 on b was ended by SIGABRT after 1 min; the other 7 tasks failed too."
    )


@pytest.mark.parametrize("how", [{"exit_code": 2}, {"signal": 9}])
def test_all_alike_and_at_once_is_no_news(how):
    tasks = [task(rank, "a", after_s=5.0, **how) for rank in range(8)]
    assert judged(task_failed, made(*tasks)) == []


@pytest.mark.parametrize("number", [1, 2, 15])
def test_a_signal_from_outside_is_no_fault(number):
    tasks = [task(rank, "a", after_s=600.0, signal=number) for rank in range(7)]
    # One that takes its time is killed half a minute later.
    tasks.append(task(7, "b", after_s=630.0, signal=9))
    assert judged(task_failed, made(*tasks)) == []


def test_a_run_that_goes_on_may_have_failed_already():
    tasks = [task(3, "b", after_s=60.0, exit_code=1)]
    assert found(task_failed, made(*tasks, count=4)).sentence == (
        "Rank 3 on b exited with 1 after 1 min; the other 3 tasks told no end."
    )


@pytest.mark.parametrize(
    ("scheduler", "words"),
    [("grid_engine", "`qacct -j 4711` may tell"), (None, "or the scheduler ended it.")],
)
def test_other_schedulers(scheduler, words):
    tasks = [task(0, "a"), task(1, "b", signal=9, after_s=9.0)]
    assert words in found(task_failed, made(*tasks, scheduler=scheduler)).action


def test_without_slurm_no_log_of_its_own_is_promised():
    tasks = [task(0, "a"), task(1, "b", exit_code=1, after_s=9.0)]
    assert "srun" not in found(task_failed, made(*tasks, scheduler=None)).action


def test_all_well():
    assert judged(task_failed, made(task(0, "a"), task(1, "b"))) == []


def test_one_program():
    assert judged(task_failed, scenario(NodePart("a"))) == []
