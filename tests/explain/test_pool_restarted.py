"""Pools of worker processes that a program makes again and again, and other worker processes."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import STEPS, of_python, own, process, seen, watched
from explain.scenario_parts import figures, found, judged
from explain.scenarios import SCENARIOS
from teho.explain.rules.cpu import known_activity, pool_restarted
from teho.model.finding import Certainty
from teho.model.in_source import CostlyOption
from teho.model.stack import Frame, State

SCENARIO = "makes_a_pool_for_each_step"
IMPORT = Frame("<frozen importlib._bootstrap>", "_find_and_load", 0, "")
BOOT = of_python("multiprocessing/spawn.py", "_main")
FORKED = of_python("multiprocessing/process.py", "BaseProcess._bootstrap")
POOL = of_python("multiprocessing/pool.py", "worker")
EXECUTOR = of_python("concurrent/futures/process.py", "_process_worker")


def of(
    *begins, import_s=2.0, work_s=5.0, unseen_s=1.0, worker=POOL, boot=BOOT, call="Pool(2)",
    progress=(),
):  # fmt: skip
    """Make a run with one worker for each begin; `progress` is what each worker's training did."""
    stacks = [
        seen((IMPORT, boot), import_s), seen((own("f(x)", 30), worker, boot), work_s, State.NATIVE),
    ]  # fmt: skip
    crew = [
        process(
            *stacks, wall_s=import_s + work_s, pid=50 + n, parent_pid=10, began_s=began_s,
            progress=progress,
        )
        for n, began_s in enumerate(begins)
    ]  # fmt: skip
    crew = [msgspec.structs.replace(one, until_s=one.until_s + unseen_s) for one in crew]
    wait = of_python("multiprocessing/pool.py", "ApplyResult.wait")
    main = process(
        seen((wait, own("pool.map(f, jobs)", 47)), 99.0, State.LOCK),
        seen((own(call, 46),), 1.0, State.NATIVE),
        progress=(),
    )
    return watched(main, *crew)


AGAIN = tuple(100.0 + 9 * n for n in range(10) for _ in range(2))


def test_the_finding_names_the_call_and_the_range():
    finding = found(pool_restarted, SCENARIOS[SCENARIO]())
    assert finding.sentence == (
        "The program made 10 pools of 2 workers, one after the other, at train.py:46. Each worker "
        "first started Python and imported all modules: this took 18 % of the run time."
    )
    assert '`pool = mp.get_context("spawn").Pool(2)`' in finding.action
    assert "`pool.close()` and `pool.join()`" in finding.action
    assert finding.certainty is Certainty.LIKELY
    assert figures(finding)["slowest line"] == "train.py:47  pool.map(solve, jobs)"


def test_the_time_before_the_first_sample_may_be_a_part_of_the_start():
    finding = found(pool_restarted, of(*AGAIN))
    assert finding.regain_percent == (pytest.approx(18.0), pytest.approx(27.0))
    assert finding.sentence.endswith("this took 18 to 27 % of the run time.")


def test_the_importing_is_no_second_finding():
    assert judged(known_activity, of(*AGAIN)) == []


def test_an_executor_ends_in_another_way():
    call = "ProcessPoolExecutor(4, mp_context=SPAWN) as pool"
    finding = found(pool_restarted, of(*AGAIN, worker=EXECUTOR, call=call))
    assert "`pool = ProcessPoolExecutor(4, mp_context=SPAWN)`" in finding.action
    assert "`pool.shutdown()`" in finding.action


def test_without_the_call_the_waiting_line_is_named():
    finding = found(pool_restarted, of(*AGAIN, call="main()"))
    assert "one after the other, and waited for them at train.py:47." in finding.sentence
    assert "`pool = Pool(...)`" in finding.action


def with_option(made, text="maxtasksperchild=1"):
    """Return the same run with an option that replaces the workers."""
    _, summary = made
    (main,) = summary.program.mains
    option = CostlyOption(name="workers_replaced", at=own(text, 46, "main"))
    one = msgspec.structs.replace(main.process, costly_options=(option,))
    return watched(one, *main.children)


ONE_BY_ONE = tuple(100.0 + 4 * n for n in range(20))


def test_workers_that_an_option_replaces():
    finding = found(pool_restarted, with_option(of(*ONE_BY_ONE)))
    # Two workers at a time, of which each imported for 2 of 8 s: 18 · 2 s / 1.9.
    assert finding.sentence == (
        "The option `maxtasksperchild=1` at train.py:46 replaces the worker processes of the pool "
        "after each task. 18 new processes started Python and imported all modules: this took 19 "
        "to 28 % of the run time."
    )
    assert finding.action.startswith("Remove `maxtasksperchild=1` at train.py:46. ")
    assert judged(known_activity, with_option(of(*ONE_BY_ONE))) == []


def test_workers_that_are_replaced_at_the_same_time():
    finding = found(pool_restarted, with_option(of(*AGAIN)))
    assert "`maxtasksperchild=1`" in finding.sentence
    # After several tasks, the workers would not all end at the same time: these are pools.
    finding = found(pool_restarted, with_option(of(*AGAIN), "max_tasks_per_child=5"))
    assert "10 pools" in finding.sentence
    finding = found(pool_restarted, with_option(of(*ONE_BY_ONE), "max_tasks_per_child=5"))
    assert "after 5 tasks" in finding.sentence
    finding = found(pool_restarted, with_option(of(*ONE_BY_ONE), "maxtasksperchild=TASKS"))
    assert "after a few tasks" in finding.sentence


def test_workers_that_train_are_no_ranks():
    made = of(*ONE_BY_ONE, progress=(STEPS,))
    assert [main.process.pid for main in made[1].program.mains] == [10]
    finding = found(pool_restarted, with_option(made))
    assert finding.sentence == found(pool_restarted, with_option(of(*ONE_BY_ONE))).sentence


@pytest.mark.parametrize(
    "made",
    [
        of(*ONE_BY_ONE, boot=FORKED, progress=(STEPS,)),
        of(*ONE_BY_ONE, import_s=0.5, work_s=7.0, progress=(STEPS,)),  # training takes the time
        of(100.0, 100.0, import_s=20.0, work_s=70.0, progress=(STEPS,)),  # for the whole run
    ],
)
def test_other_processes_that_train_do_the_work_of_the_program(made):
    assert 10 not in [main.process.pid for main in made[1].program.mains]


@pytest.mark.parametrize(
    "made",
    [
        of(*ONE_BY_ONE, boot=FORKED),  # a forked worker has all modules
        of(*ONE_BY_ONE, import_s=0.1, work_s=7.0, unseen_s=0.1),  # a short start
        of(*(100.0 for _ in range(20))),  # the workers have not ended
        of(*ONE_BY_ONE[:4]),
    ],
)
def test_replaced_workers_that_cost_little(made):
    assert judged(pool_restarted, with_option(made)) == []


@pytest.mark.parametrize(("pools", "count"), [(3, 0), (4, 1)])
def test_a_few_pools_are_not_reported(pools, count):
    made = of(*(100.0 + 25 * n for n in range(pools)), import_s=10.0)
    assert len(judged(pool_restarted, made)) == count


@pytest.mark.parametrize(
    "made",
    [
        of(*(100.0 for _ in range(20))),  # one pool of many workers
        of(*(100.0 + 4 * n for n in range(20))),  # workers that are replaced one by one
        of(*AGAIN, boot=FORKED),  # a forked worker has all modules
        of(*AGAIN, worker=FORKED),  # processes without a pool
        of(*AGAIN, import_s=0.1, work_s=7.0, unseen_s=0.1),  # a short start
        of(*AGAIN[:8], import_s=0.2, unseen_s=0.4),
    ],
)
def test_look_alikes(made):
    assert judged(pool_restarted, made) == []
