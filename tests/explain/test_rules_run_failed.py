"""How a failed run ended: one program, several tasks, and with which of them it began."""

from __future__ import annotations

import msgspec
import pytest

from explain import scenarios
from explain.scenario_parts import NodePart, figures, found, judged, scenario, step, task
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.job import run_failed
from teho.model.finding import Severity
from teho.model.missing import Missing, Reason
from teho.model.run import Clock
from teho.model.stack import Frame
from teho.model.watched import Raised

TIMEOUT = "the command `timeout` stopped the program at its time limit"


def made(*tasks, count=None, scheduler="slurm", clock=None):
    hosts = ("a", "b")
    parts = (
        NodePart("a", scheduler=scheduler),
        NodePart("b", scheduler=scheduler, clock=clock),
    )
    return scenario(*parts, step=step(count or len(tasks), *hosts), tasks=tasks)


def ended(*parts, elapsed_s=600.0, exception="", **end):
    """Make a run of one program that ended so."""
    run, summary = scenario(*(parts or [NodePart("a")]), elapsed_s=elapsed_s)
    end = msgspec.structs.replace(run.end, **({"exit_code": None} | end))
    raised = {None: Raised(text=exception, at=None, at_s=600.0)} if exception else {}
    summary = msgspec.structs.replace(summary, exceptions=raised)
    return msgspec.structs.replace(run, end=end), summary


class TestOneProgram:
    @pytest.mark.parametrize(
        ("end", "sentence", "severity"),
        [
            ({"exit_code": 1}, "failed after 10 min with exit code 1", "critical"),
            (
                {"exit_code": 124},
                f"failed after 10 min with exit code 124: {TIMEOUT}",
                "warning",
            ),
            (
                {"exit_code": 126},
                "failed after 10 min with exit code 126, which means that a file is not executable",
                "critical",
            ),
            (
                {"exit_code": 127},
                "failed after 10 min with exit code 127, which means that a command was not found",
                "critical",
            ),
            (
                {"exit_code": 130},
                "failed after 10 min with exit code 130, which usually means Ctrl-C",
                "warning",
            ),
            (
                {"exit_code": 143},
                "failed after 10 min with exit code 143, which usually means SIGTERM",
                "warning",
            ),
            (
                {"exit_code": 137},
                "failed after 10 min with exit code 137, which usually means SIGKILL",
                "critical",
            ),
            (
                {"exit_code": 139},
                "failed after 10 min with exit code 139, which usually means SIGSEGV",
                "critical",
            ),
            ({"exit_code": 255}, "failed after 10 min with exit code 255", "critical"),
            ({"signal": 2}, "was ended by Ctrl-C (SIGINT) after 10 min", "warning"),
            ({"signal": 9}, "was ended by SIGKILL after 10 min", "critical"),
            ({"signal": 11}, "was ended by SIGSEGV after 10 min", "critical"),
            ({"signal": 15}, "was ended by SIGTERM after 10 min", "warning"),
            ({"signal": 10}, "was ended by SIGUSR1 after 10 min", "critical"),
            ({"signal": 63}, "was ended by signal 63 after 10 min", "critical"),
        ],
    )
    def test_says_how_it_ended(self, end, sentence, severity):
        finding = found(run_failed, ended(**end))
        assert finding.sentence == f"The program {sentence}."
        assert len(finding.sentence.split()) <= 20
        assert finding.severity.value == severity
        assert finding.action.endswith(".")

    @pytest.mark.parametrize("end", [{"exit_code": 0}, {"signal": 15, "on_purpose": "window"}])
    def test_a_good_end(self, end):
        assert judged(run_failed, ended(**end)) == []

    def test_a_run_that_continues(self):
        run, summary = ended(exit_code=0)
        assert judged(run_failed, (msgspec.structs.replace(run, end=None), summary)) == []

    @pytest.mark.parametrize(
        ("exception", "action"),
        [
            ("MemoryError", "Request more memory"),
            ("torch.OutOfMemoryError: CUDA out of memory.", "Use a smaller batch"),
            ("ValueError: 3", "Read the last lines of the job's log (by default `slurm-4711.out`)"),
        ],
    )
    def test_the_exception_is_named_if_it_is_known(self, exception, action):
        finding = found(run_failed, ended(exit_code=1, elapsed_s=62.0, exception=exception))
        assert finding.sentence == (
            f"The program failed after 1 min 2 s with exit code 1: {exception}."
        )
        assert figures(finding)["exception"] == exception
        assert finding.action.startswith(action)

    def test_a_signal_is_not_an_exception_s(self):
        assert "exception" not in figures(
            found(run_failed, ended(signal=9, exception="ValueError: 1"))
        )

    @pytest.mark.parametrize(("elapsed_s", "at_limit"), [(3989.0, False), (3990.0, True)])
    @pytest.mark.parametrize("end", [{"signal": 15}, {"signal": 9}, {"exit_code": 143}])
    def test_threshold_of_the_time_limit(self, end, elapsed_s, at_limit):
        finding = found(run_failed, ended(elapsed_s=elapsed_s, **end))
        assert ("at the job's time limit" in finding.sentence) is at_limit
        assert ("`--time=HH:MM:SS`" in finding.action) is at_limit
        assert bool(finding.thresholds) is at_limit
        assert finding.severity is Severity.CRITICAL or not at_limit

    def test_an_exit_code_of_its_own_is_not_the_time_limit_s(self):
        assert "time limit" not in found(run_failed, ended(exit_code=1, elapsed_s=4199.0)).sentence

    def test_without_a_time_limit(self):
        made_of = ended(NodePart("a", time_limit_s=None), signal=15, elapsed_s=99_999.0)
        assert "time limit" not in found(run_failed, made_of).sentence

    @pytest.mark.parametrize(
        ("kills", "known"), [(1.0, True), (0.0, False), (Missing(Reason.ABSENT), False)]
    )
    @pytest.mark.parametrize("end", [{"signal": 9}, {"exit_code": 137}])
    def test_memory_that_ran_out(self, end, kills, known):
        finding = found(run_failed, ended(NodePart("a", oom_kills=kills), **end))
        assert ("because memory ran out" in finding.sentence) is known

    @pytest.mark.parametrize(
        ("state", "sentence", "severity"),
        [
            ("failed", "The job failed after 10 min.", "critical"),
            ("timed_out", "The job ended at its time limit after 10 min.", "critical"),
            ("cancelled", "The job was cancelled after 10 min.", "warning"),
            ("out_of_memory", "The job ended after 10 min because memory ran out.", "critical"),
            ("node_failed", "The job ended after 10 min because a node failed.", "critical"),
            (
                "preempted",
                "The job was stopped after 10 min, because another job had priority (preemption).",
                "critical",
            ),
        ],
    )
    def test_a_job_that_was_recorded_from_outside(self, state, sentence, severity):
        finding = found(run_failed, ended(job_state=state))
        assert finding.sentence == sentence
        assert finding.severity.value == severity

    @pytest.mark.parametrize("state", ["running", "completed", "suspended", "completing", ""])
    def test_a_job_that_did_not_fail(self, state):
        assert judged(run_failed, ended(job_state=state)) == []

    def test_without_a_scheduler_or_rows(self):
        run, summary = ended(NodePart("a", scheduler=None), exit_code=1)
        finding = found(run_failed, (run, summary))
        assert "what the program printed" in finding.action
        run, summary = scenario(elapsed_s=0.4)
        run = msgspec.structs.replace(run, end=msgspec.structs.replace(run.end, exit_code=3))
        assert "exit code 3" in found(run_failed, (run, summary)).sentence

    def test_it_comes_before_all_other_findings(self):
        findings, _ = judge_all(*ended(NodePart("a", oom_kills=1.0), signal=15), load_policy())
        kinds = [(one.kind, one.severity.value) for one in findings]
        assert kinds[:2] == [("run_failed", "warning"), ("out_of_memory", "critical")]


class TestTasks:
    def test_killed_while_others_ended_well(self):
        tasks = [task(rank, "ab"[rank // 4]) for rank in range(8)]
        tasks[5] = task(5, "b", after_s=720.0, signal=9)
        finding = found(run_failed, made(*tasks))
        assert finding.sentence == (
            "Rank 5 on b was ended by SIGKILL after 12 min; the other 7 tasks succeeded."
        )
        assert finding.severity is Severity.CRITICAL
        assert figures(finding) == {
            "ended": "by SIGKILL",
            "task that ended first": "rank 5 on b",
            "ended after": 720.0,
            "tasks that failed": 1.0,
            "tasks that succeeded": 7.0,
            "tasks of the job step": 8.0,
        }
        assert "`sacct -j 4711 -o JobID,State,ExitCode,MaxRSS`" in finding.action

    def test_how_the_others_ended(self):
        assert found(run_failed, scenarios.one_task_killed()).sentence == (
            "Rank 5 on r01g02 was ended by SIGKILL after 24 min; 6 of the other 7 tasks failed "
            "too and 1 left no exit status."
        )

    def test_an_exit_code(self):
        tasks = [task(0, "a", after_s=60.0, exit_code=3), task(1, "b", after_s=90.0, exit_code=1)]
        finding = found(run_failed, made(*tasks))
        assert finding.sentence == (
            "Rank 0 on a failed with exit code 3 after 1 min; the other task failed too."
        )
        assert finding.action.startswith("Read what rank 0 printed last")
        assert "`srun --output=job-%j-%t.log`" in finding.action

    def test_the_exception_of_the_rank_that_began_it(self):
        tasks = [task(0, "a", after_s=60.0, exit_code=3), task(1, "b", after_s=90.0, exit_code=1)]
        at = Frame("/home/ann/train.py", "main", 41, "load(path)")
        raised = {
            0: Raised(text="ValueError: 3", at=at, at_s=60.0),
            1: Raised(text="ConnectionError: lost", at=None, at_s=90.0),
        }
        run, summary = made(*tasks)
        finding = found(run_failed, (run, msgspec.structs.replace(summary, exceptions=raised)))
        assert finding.sentence == (
            "Rank 0 on a failed with exit code 3 after 1 min: ValueError: 3 (train.py:41); the "
            "other task failed too."
        )
        assert figures(finding)["line of your code"] == "train.py:41"

    @pytest.mark.parametrize(
        ("texts", "words"),
        [
            ({0: "KeyError: 1", 1: "KeyError: 1"}, "with exit code 1: KeyError: 1."),
            ({0: "KeyError: 1", 1: "KeyError: 2"}, "with exit code 1."),
            ({0: "KeyError: 1"}, "with exit code 1."),
        ],
    )
    def test_all_at_once_name_an_exception_that_all_had(self, texts, words):
        tasks = [task(rank, "a", after_s=60.0, exit_code=1) for rank in range(2)]
        run, summary = made(*tasks)
        raised = {rank: Raised(text=text, at=None, at_s=60.0) for rank, text in texts.items()}
        finding = found(run_failed, (run, msgspec.structs.replace(summary, exceptions=raised)))
        assert finding.sentence.endswith(words)

    def test_several_on_one_node(self):
        tasks = [task(rank, "a") for rank in range(3)]
        tasks += [task(rank, "b", after_s=60.0, signal=11) for rank in range(3, 6)]
        assert found(run_failed, made(*tasks)).sentence == (
            "Ranks 3–5 on b were ended by SIGSEGV after 1 min; the other 3 tasks succeeded."
        )

    @pytest.mark.parametrize(
        ("later_s", "words"), [(1.0, "Both tasks failed"), (1.1, "Rank 0 on a failed")]
    )
    def test_threshold_of_first(self, later_s, words):
        tasks = [task(0, "a", after_s=60.0, exit_code=1),
                 task(1, "b", after_s=60.0 + later_s, exit_code=1)]  # fmt: skip
        assert found(run_failed, made(*tasks)).sentence.startswith(words)

    def test_clocks_that_are_not_sure_name_no_task(self):
        clock = Clock(ahead_s=100.0, uncertainty_s=2.0)
        tasks = [task(0, "a", after_s=60.0, exit_code=1), task(1, "b", after_s=164.0, exit_code=1)]
        assert found(run_failed, made(*tasks, clock=clock)).sentence == (
            "Both tasks failed after 1 min with exit code 1."
        )

    def test_the_first_goes_by_the_run_s_clock(self):
        clock = Clock(ahead_s=100.0, uncertainty_s=0.01)
        tasks = [task(0, "a", after_s=60.0, exit_code=1), task(1, "b", after_s=130.0, exit_code=2)]
        sentence = found(run_failed, made(*tasks, clock=clock)).sentence
        assert sentence.startswith("Rank 1 on b failed with exit code 2 after 30.0 s")

    def test_at_the_same_moment_the_odd_one_is_named(self):
        tasks = [task(rank, "a", after_s=60.0, exit_code=1) for rank in range(7)]
        tasks.append(task(7, "b", after_s=60.4, signal=6))
        assert found(run_failed, made(*tasks)).sentence == (
            "Rank 7 on b was ended by SIGABRT after 1 min; the other 7 tasks failed too."
        )

    @pytest.mark.parametrize(
        ("how", "words"),
        [({"exit_code": 2}, "failed after 5.0 s with exit code 2"),
         ({"signal": 9}, "were ended by SIGKILL after 5.0 s")],
    )  # fmt: skip
    def test_all_alike_and_at_once(self, how, words):
        tasks = [task(rank, "a", after_s=5.0, **how) for rank in range(8)]
        finding = found(run_failed, made(*tasks))
        assert finding.sentence == f"All 8 tasks {words}."
        assert finding.severity is Severity.CRITICAL

    @pytest.mark.parametrize("number", [1, 2, 15])
    def test_a_signal_from_outside_names_no_task(self, number):
        tasks = [task(rank, "a", after_s=600.0, signal=number) for rank in range(7)]
        # One that takes its time is killed half a minute later.
        tasks.append(task(7, "b", after_s=630.0, signal=9))
        finding = found(run_failed, made(*tasks))
        assert finding.sentence.startswith("All 8 tasks failed: the first was ended by ")
        assert finding.severity is Severity.WARNING

    def test_a_run_that_continues_may_have_failed_already(self):
        tasks = [task(3, "b", after_s=60.0, exit_code=1)]
        assert found(run_failed, made(*tasks, count=4)).sentence == (
            "Rank 3 on b failed with exit code 1 after 1 min; the other 3 tasks left no exit "
            "status."
        )

    @pytest.mark.parametrize(
        ("scheduler", "words"), [("grid_engine", "`qacct -j 4711`"), (None, "")]
    )
    def test_other_schedulers(self, scheduler, words):
        tasks = [task(0, "a"), task(1, "b", signal=9, after_s=9.0)]
        action = found(run_failed, made(*tasks, scheduler=scheduler)).action
        assert words in action
        assert "sacct" not in action

    def test_without_slurm_a_log_of_each_task_is_not_promised(self):
        tasks = [task(0, "a"), task(1, "b", exit_code=1, after_s=9.0)]
        assert "srun" not in found(run_failed, made(*tasks, scheduler=None)).action

    def test_all_well(self):
        assert judged(run_failed, made(task(0, "a"), task(1, "b"))) == []
