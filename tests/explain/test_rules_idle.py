"""A run without stacks that is idle, and runs that only look like it."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import process
from explain.scenario_parts import NodePart, found, gpu, judged, repeated, scenario, step
from teho.explain.program import program_of
from teho.explain.rules.job import run_idle
from teho.model.finding import Certainty
from teho.model.run import IdleProcess, IdleTime
from teho.model.stack import State

NODE = "r01g01"
USED = repeated((4.0, 40), (0.0, 20))
"""Cores used: nothing in the last 20 min of an hour. A bin has one minute."""
RATES = dict.fromkeys(
    ("job_read_calls_bytes", "job_write_calls_bytes", "net_receive_bytes", "net_send_bytes"), 100.0
)  # fmt: skip


def waiting(name="solver", state=State.LOCK, pid=21, **facts):
    facts = {"wakes_up": False} | facts
    return IdleProcess(pid=pid, name=name, state=state.value if state else "", **facts)


def run_of(*processes, used=USED, since_s=2400.0, rates=None, gpus=(), **facts):
    part = NodePart(NODE, cores=8, cores_used=used, gpus=gpus, rates=RATES | (rates or {}))
    run, summary = scenario(part, **facts)
    (node,) = run.nodes
    idle = IdleTime(since_s=since_s, processes=processes) if processes else None
    end = run.end and msgspec.structs.replace(run.end, exit_code=None, signal=15)
    node = msgspec.structs.replace(node, idle=idle)
    return msgspec.structs.replace(run, end=end, nodes=(node,)), summary


def test_a_program_whose_threads_wait_for_each_other_may_be_stuck():
    finding = found(run_idle, run_of(waiting()))
    assert finding.certainty is Certainty.POSSIBLE
    assert finding.sentence == (
        "The run may be stuck. All cores have been idle for 20 min. Process 21 (`solver`) waits "
        "for another thread."
    )


def test_the_gpus_are_named_too():
    made = run_of(waiting(), waiting(pid=22, state=State.PROCESS), gpus=[gpu(0.0)])
    assert found(run_idle, made).sentence == (
        "The run may be stuck. All cores and GPUs have been idle for 20 min. Processes 21 "
        "(`solver`) and 22 (`solver`) wait for another thread and another process."
    )


def test_a_launcher_of_processes_does_not_count():
    made = run_of(waiting("mpirun", State.NETWORK, pid=20), waiting())
    assert "Process 21" in found(run_idle, made).sentence


@pytest.mark.parametrize(
    "processes",
    [
        [],
        [waiting(state=State.SLEEPING)],
        [waiting(state=State.NETWORK)],  # a download, or a request to a server
        [waiting(state=State.WAITING)],  # a terminal, `tail -f`
        [waiting(state=None)],  # the kernel does not say it
        [waiting(listens=True)],  # a server
        [waiting(terminal=True)],
        [waiting(wakes_up=True)],  # a slow download, or a filter in a pipeline
        [waiting(state=State.DISK, uninterruptible=True)],  # a long write
        [waiting("ssh", State.PROCESS)],  # a job on another node
        [waiting("qrsh", State.LOCK), waiting()],
        [waiting("srun", State.LOCK)],
        [waiting("sleep", State.SLEEPING), waiting()],
    ],
)
def test_who_may_wait_on_purpose_is_not_called_stuck(processes):
    assert judged(run_idle, run_of(*processes)) == []


@pytest.mark.parametrize("metric", RATES)
def test_a_run_that_moves_data_is_not_called_stuck(metric):
    assert judged(run_idle, run_of(waiting(), rates={metric: 2e5})) == []


def test_a_busy_gpu_is_progress():
    assert judged(run_idle, run_of(waiting(), gpus=[gpu(40.0)])) == []


def test_a_program_that_never_worked_is_not_called_stuck():
    assert judged(run_idle, run_of(waiting(), used=0.0, since_s=0.0)) == []


def test_ten_minutes_are_needed():
    assert judged(run_idle, run_of(waiting(), since_s=3001.0)) == []
    assert found(run_idle, run_of(waiting(), since_s=2999.0))
    busy = repeated((4.0, 55), (0.0, 5))
    assert judged(run_idle, run_of(waiting(), used=busy)) == []


def test_a_run_that_ended_well_was_not_stuck():
    run, summary = run_of(waiting())
    end = msgspec.structs.replace(run.end, exit_code=0, signal=None)
    assert judged(run_idle, (msgspec.structs.replace(run, end=end), summary)) == []


def test_a_node_that_is_not_recorded_may_work():
    made = run_of(waiting(), step=step(2, NODE, "r01g02"))
    assert judged(run_idle, made) == []


def test_a_program_with_the_probe_is_judged_by_its_stacks():
    run, summary = run_of(waiting())
    program = program_of([process(wall_s=3600.0)])
    assert judged(run_idle, (run, msgspec.structs.replace(summary, program=program))) == []
