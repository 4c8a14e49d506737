"""A run that is stuck, and pauses that only look like it."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import (
    LOOP,
    NODE,
    awaiting,
    of_library,
    own,
    process,
    seen,
    watched,
)
from explain.scenario_parts import NodePart, found, gpu, judged, repeated
from teho.explain.rules.job import run_stuck
from teho.model.finding import Severity
from teho.model.stack import State
from teho.model.watched import Death, Progress, Raised, Stayed, Wait

WALL_S = 3600.0
BEGAN_S = 100.0
SILENT_S = 600.0
IDLE = repeated((4.0, 50), (0.0, 10))
"""Cores used: nothing in the last ten minutes of an hour."""
REDUCE = of_library("torch/distributed/distributed_c10d.py", "all_reduce")
ALL_REDUCE = seen((REDUCE, own("dist.all_reduce(x)", 33)), 60.0, State.NETWORK)
OPEN = seen((own("open(path)", 51, "read"), LOOP), 60.0, State.DISK)
LOCKED = seen((own("with self.lock:", 52, "put"), LOOP), 60.0, State.LOCK)


def steps(count=30_000, silent_s=SILENT_S, longest=20):
    """Return progress that ended a while ago; the longest step took 2^longest µs."""
    last_s = BEGAN_S + WALL_S - silent_s
    between = {14: Wait(count - 1, 0.1 * count), longest: Wait(1, 2**longest / 1e6)}
    return [Progress(steps=count, first_s=105.0, last_s=last_s, between=between)]


def stuck(*at_end, progress=None, rank=None, pid=10, **facts):
    torch = {"rank": rank, "world_size": 3} if rank is not None else None
    return process(
        wall_s=WALL_S, began_s=BEGAN_S, pid=pid, at_end=at_end, torch=torch,
        progress=steps() if progress is None else progress, **facts,
    )  # fmt: skip


def run_of(*processes, cores_used=IDLE, rates=None, gpus=(), exit_code=None):
    part = NodePart(NODE, cores=8, cores_used=cores_used, rates=rates, gpus=gpus)
    run, summary = watched(*processes, parts=[part])
    end = run.end and msgspec.structs.replace(run.end, exit_code=exit_code, signal=15)
    return msgspec.structs.replace(run, end=end if exit_code is None else run.end), summary


def test_a_thread_that_waits_for_a_lock_is_named_with_its_line():
    finding = found(run_stuck, run_of(stuck(LOCKED)))
    assert finding.severity is Severity.CRITICAL
    assert finding.sentence == (
        "The run is stuck: no step for 10 min. The program waits in `with self.lock:` "
        "(train.py:52)."
    )
    assert "`teho cancel 4711`" in finding.action
    assert "in different orders" in finding.action


def test_the_rank_for_which_the_others_wait_is_the_cause():
    ranks = [
        stuck(ALL_REDUCE, rank=0),
        stuck(OPEN, rank=1, pid=11),
        stuck(ALL_REDUCE, rank=2, pid=12),
    ]
    finding = found(run_stuck, run_of(*ranks))
    assert finding.sentence == (
        "The run is stuck: no step for 10 min. Rank 1 waits in `open(path)` (train.py:51); the "
        "other ranks wait for rank 1 in `dist.all_reduce(x)` (train.py:33)."
    )
    assert "file system" in finding.action


def test_if_all_ranks_communicate_all_are_named():
    ranks = [stuck(ALL_REDUCE, rank=0), stuck(ALL_REDUCE, rank=1, pid=11)]
    finding = found(run_stuck, run_of(*ranks))
    assert "Ranks 0 and 1 wait in `dist.all_reduce(x)` (train.py:33)." in finding.sentence
    assert "same collective operations" in finding.action


def test_a_rank_that_has_ended_is_named():
    killed = process(wall_s=WALL_S - SILENT_S, began_s=BEGAN_S, pid=12, torch={"rank": 2})
    ranks = [stuck(ALL_REDUCE, rank=0), stuck(ALL_REDUCE, rank=1, pid=11), killed]
    finding = found(run_stuck, run_of(*ranks))
    assert finding.sentence == (
        "The run is stuck: no step for 10 min. Rank 2 has ended, but ranks 0 and 1 wait in "
        "`dist.all_reduce(x)` (train.py:33)."
    )
    assert "its error is in the log" in finding.action


def test_a_spinning_exchange_seems_busy_but_is_stuck():
    spinning = msgspec.structs.replace(ALL_REDUCE, state=State.NATIVE)
    ranks = [stuck(spinning, rank=0), stuck(spinning, rank=1, pid=11)]
    assert found(run_stuck, run_of(*ranks, cores_used=2.0, gpus=[gpu(100.0)]))


def test_a_worker_that_does_not_answer():
    finding = found(run_stuck, run_of(stuck(awaiting(60.0))))
    assert "loader worker" in finding.action


def test_without_steps_everything_must_be_idle_for_minutes():
    made = run_of(stuck(LOCKED, progress=()))
    assert found(run_stuck, made).sentence.startswith("The run is stuck: no progress for 5 min.")
    assert judged(run_stuck, run_of(stuck(LOCKED, progress=()), cores_used=1.0)) == []


def test_a_short_run_without_steps_is_not_judged():
    short = process(wall_s=299.0, began_s=BEGAN_S, progress=(), at_end=(LOCKED,))
    assert judged(run_stuck, run_of(short)) == []


def test_without_steps_the_whole_time_must_be_idle():
    # In an hour of 60 bins, the cores were in use 4 min ago.
    used = repeated((4.0, 56), (0.0, 4))
    assert judged(run_stuck, run_of(stuck(LOCKED, progress=()), cores_used=used)) == []


def test_a_busy_gpu_is_progress():
    assert judged(run_stuck, run_of(stuck(LOCKED), gpus=[gpu(40.0)])) == []


@pytest.mark.parametrize("metric", ["job_read_calls_bytes", "job_write_calls_bytes"])
def test_a_program_that_reads_or_writes_continues(metric):
    assert judged(run_stuck, run_of(stuck(OPEN), rates={metric: 2e6})) == []
    assert found(run_stuck, run_of(stuck(OPEN), rates={metric: 2e3}))


@pytest.mark.parametrize(
    "text", ["input('go on? ')", "time.sleep(3600)", "breakpoint()", "getpass('password')"]
)
def test_who_waits_on_purpose_is_not_stuck(text):
    waits = seen((own(text, 60), LOOP), 60.0, State.SLEEPING)
    assert judged(run_stuck, run_of(stuck(waits))) == []


@pytest.mark.parametrize(
    ("is_terminal", "progress", "count"),
    [(False, None, 1), (True, None, 0), (None, None, 0), (False, (), 0)],
)
def test_a_question_that_no_user_can_answer(is_terminal, progress, count):
    waits = seen((own("input('go on? ')", 60), LOOP), 60.0, State.PROCESS)
    asking = stuck(waits, progress=progress, stdin_is_terminal=is_terminal)
    assert len(judged(run_stuck, run_of(asking))) == count


def test_a_server_waits_for_requests():
    accept = of_library("uvicorn/server.py", "Server.main_loop")
    waits = seen((accept, own("server.run()", 60)), 60.0, State.NETWORK)
    assert judged(run_stuck, run_of(stuck(waits, progress=()))) == []


def test_a_long_evaluation_computes():
    evaluating = seen((own("evaluate(model)", 61), LOOP), 60.0)
    assert judged(run_stuck, run_of(stuck(evaluating))) == []


def test_one_process_that_continues_is_progress():
    ranks = [stuck(ALL_REDUCE, rank=0), process(wall_s=WALL_S, pid=11)]
    assert judged(run_stuck, run_of(*ranks)) == []


@pytest.mark.parametrize(
    "progress",
    [
        steps(silent_s=40.0),
        steps(count=5),
        steps(silent_s=900.0, longest=29),  # the longest step took 9 min
        steps(count=100),  # a step usually takes 30 s, so ten take 5 min
    ],
)
def test_a_pause_that_is_not_unusual(progress):
    made = run_of(stuck(LOCKED, progress=progress))
    expected = progress[-1].steps == 100
    assert bool(judged(run_stuck, made)) is expected


def test_a_run_that_ended_well_was_not_stuck():
    assert judged(run_stuck, run_of(stuck(LOCKED), exit_code=0)) == []


def test_a_process_that_moves_from_line_to_line_is_not_stuck():
    places = [seen((own(f"queue.get({line})", line), LOOP), 20.0, State.LOCK) for line in (1, 2, 3)]
    assert judged(run_stuck, run_of(stuck(*places))) == []


def test_a_pause_of_less_than_45_s_is_not_judged():
    def after(silent_s):
        # A usual step of a hundredth of a second, and no longer one before.
        progress = [Progress(steps=30_000, first_s=105.0, last_s=BEGAN_S + WALL_S - silent_s)]
        return judged(run_stuck, run_of(stuck(LOCKED, progress=progress), cores_used=0.0))

    assert after(44.0) == []
    assert len(after(46.0)) == 1


def test_a_dead_child_is_named_with_its_pid_and_how_it_ended():
    waits = stuck(
        seen((own("queue.get()", 60), LOOP), 60.0, State.PROCESS),
        stayed=Stayed(since_s=3100.0, at_s=3600.0, dead=(Death(pid=77, at_s=3600.0, status=9),)),
    )
    finding = found(run_stuck, run_of(waits))
    assert finding.sentence == (
        "The run is stuck: no step for 10 min. The program waits in `queue.get()` (train.py:60). "
        "Of the processes that it started, process 77 was ended by SIGKILL."
    )
    assert "memory was full" in finding.action


@pytest.mark.parametrize(
    ("status", "at_s", "how"),
    [
        (9, 200.0, "was ended by SIGKILL"),
        (11, 200.0, "was ended by SIGSEGV"),
        (1 << 8, 200.0, "ended with exit code 1"),
        (None, 3110.0, "no longer exists"),
        (0, 3110.0, "has ended"),
        (None, 200.0, ""),  # it ended long before the program stopped
        (0, 200.0, ""),
    ],
)
def test_a_worker_that_has_ended(status, at_s, how):
    child = process(
        pid=12, parent_pid=10, wall_s=at_s - BEGAN_S, began_s=BEGAN_S, progress=(),
        death=Death(pid=12, at_s=at_s, status=status),
    )  # fmt: skip
    sentence = found(run_stuck, run_of(stuck(LOCKED), child)).sentence
    assert (f"process 12 {how}." in sentence) is bool(how)
    assert ("Of the processes" in sentence) is bool(how)


def test_workers_of_an_ended_epoch_are_not_named_with_living_ones():
    # At the end of an epoch, its workers end, and those of the next epoch hang.
    def child(pid, **facts):
        return process(pid=pid, parent_pid=10, wall_s=3100.0, began_s=BEGAN_S, progress=(), **facts)

    ended = child(12, death=Death(pid=12, at_s=3110.0, status=None))
    named = found(run_stuck, run_of(stuck(LOCKED), ended)).sentence
    assert "process 12 no longer exists" in named
    beside = found(run_stuck, run_of(stuck(LOCKED), ended, child(13))).sentence
    assert "process 12" not in beside


def test_a_worker_that_raised_an_exception_is_named_with_it():
    child = process(
        pid=12, parent_pid=10, wall_s=50.0, began_s=BEGAN_S, progress=(),
        death=Death(pid=12, at_s=150.0, status=1 << 8),
        raised=Raised(text="KeyError: 'x'", at=None, at_s=150.0),
    )  # fmt: skip
    sentence = found(run_stuck, run_of(stuck(LOCKED), child)).sentence
    assert "process 12 ended with KeyError: 'x'." in sentence


def others(*frames):
    return Stayed(since_s=3100.0, at_s=3600.0, others=(frames,))


def test_a_deadlock_names_the_lines_of_both_threads():
    waits = stuck(LOCKED, stayed=others(own("self.history", 31, "snapshot"), LOOP))
    assert found(run_stuck, run_of(waits)).sentence == (
        "The run is stuck: no step for 10 min. The program waits in `with self.lock:` "
        "(train.py:52), and another thread of it waits for a lock in `self.history` (train.py:31)."
    )


@pytest.mark.parametrize(
    "frame",
    [
        own("queue.get()", 31),
        own("thread.join()", 31),
        of_library("threading.py", "Condition.wait", "waiter.acquire()"),
    ],
)
def test_a_thread_that_waits_for_work_is_no_deadlock(frame):
    waits = stuck(LOCKED, stayed=others(frame, LOOP))
    assert "another thread" not in found(run_stuck, run_of(waits)).sentence


@pytest.mark.parametrize(("path", "named"), [("/scratch/a.npy", " (/scratch/a.npy)"), ("", "")])
def test_a_file_system_that_does_not_answer_is_named(path, named):
    waits = stuck(OPEN, stayed=Stayed(since_s=3100.0, at_s=3600.0, blocked_on=path))
    finding = found(run_stuck, run_of(waits))
    assert finding.sentence == (
        "The run is stuck: no step for 10 min. The program waits for a file system that does not "
        f"answer{named}, in `open(path)` (train.py:51)."
    )
    assert "report the problem to the site's support" in finding.action


def test_short_bins_at_the_end_are_used():
    # In a run of 24 h, one time bin has 2.4 min or more: the last one has work and the hang.
    run, summary = run_of(stuck(LOCKED), cores_used=4.0)
    assert judged(run_stuck, (run, summary)) == []

    def with_end(*cores):
        node = msgspec.structs.replace(summary.nodes[0], end_series={"job_cpu_s": list(cores)})
        return run, msgspec.structs.replace(summary, nodes=(node,), end_bin_s=150.0)

    assert found(run_stuck, with_end(4.0, 4.0, 0.0, 0.0))
    assert judged(run_stuck, with_end(0.0, 0.0, 0.0, 4.0)) == []
    assert judged(run_stuck, with_end(4.0, 4.0, None, None)) == []


def test_steps_that_the_probe_has_not_written_yet_may_have_been_made():
    # The probe wrote its last line 600 s ago. Until 50 s ago, samples showed other lines.
    def told(since_s):
        at_s = BEGAN_S + WALL_S
        stayed = Stayed(since_s=at_s - since_s, at_s=at_s)
        return judged(run_stuck, run_of(stuck(LOCKED, stayed=stayed, noted_s=at_s - 600.0)))

    assert told(40.0) == []
    assert told(50.0)[0].sentence.startswith("The run is stuck: no step for 50.0 s.")


def test_a_wait_after_a_long_evaluation_begins_with_the_last_step():
    at_s = BEGAN_S + WALL_S
    stayed = Stayed(since_s=at_s - 50.0, at_s=at_s)
    made = run_of(stuck(LOCKED, stayed=stayed, noted_s=at_s - 5.0))
    assert found(run_stuck, made).sentence.startswith("The run is stuck: no step for 10 min.")
