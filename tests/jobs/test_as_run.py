"""A job of the accounting as a run: what is known, what is a bound, and what is missing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.jobs.as_run import as_run, memory_of, node_names
from teho.jobs.js1 import Js1, Js1Node, encode_js1
from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.finding import Finding
from teho.model.job import JobState
from teho.model.missing import Missing
from teho.model.run import RunState
from teho.model.summary import PartlyKnown
from teho.units import GIB

END = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def job(**changes: Any) -> AccountedJob:
    """Return a job of two hours on one node that used its 10 cores."""
    facts: dict[str, Any] = {
        "id": "7", "number": "7", "name": "train", "state": JobState.COMPLETED, "exit_code": 0,
        "scheduler": "slurm", "source": "sacct", "node_list": "r01g01", "nodes": 1, "cores": 10,
        "gpus": 0, "memory_bytes": 40 * GIB, "memory_peak_bytes": 30 * GIB, "cpu_s": 68_000.0,
        "elapsed_s": 7200.0, "started_at": END - timedelta(hours=2), "ended_at": END,
        "time_limit_s": 9000.0, "steps": (step("batch", 30 * GIB),),
    }  # fmt: skip
    return AccountedJob(**(facts | changes))


def step(name: str, peak: int, *, tasks: int = 1, mean: int | None = None) -> AccountedStep:
    return AccountedStep(
        name=name,
        state=JobState.COMPLETED,
        tasks=tasks,
        memory_peak_bytes=peak,
        memory_mean_bytes=mean or peak,
    )


def summary(**nodes: Js1Node) -> str:
    return encode_js1(Js1(nodes=nodes, elapsed_s=7200))


def findings(one: AccountedJob) -> dict[str, Finding]:
    found = as_run(one)
    judged, _ = judge_all(found.run, found.summary, load_policy())
    return {finding.kind: finding for finding in judged}


def test_a_job_on_one_node() -> None:
    found = as_run(job())
    (node,) = found.summary.nodes
    assert found.state is RunState.FINISHED
    assert node.cpu_cores_used == pytest.approx(68_000 / 7200)
    assert (node.memory_peak_bytes, node.memory_limit_bytes) == (30 * GIB, 40 * GIB)
    assert found.run.allocation("r01g01").cores_asked == 10
    assert found.run.limit_s == 9000
    assert findings(job()) == {}


def test_the_same_rules_judge_it() -> None:
    assert set(findings(job(cpu_s=7200.0, cores=40))) == {"serial_program"}
    assert set(findings(job(cpu_s=20_000.0))) == {"cores_unused"}
    overasked = findings(job(memory_bytes=90 * GIB))["memory_overasked"]
    assert "`--mem=36G`" in overasked.action
    assert set(findings(job(memory_bytes=31 * GIB))) == {"memory_near_limit"}
    assert "time_overasked" in findings(job(time_limit_s=20_000.0))
    failed = findings(job(state=JobState.FAILED, exit_code=3))["run_failed"]
    assert failed.sentence == "The job failed after 2 h with exit code 3."
    killed = findings(job(state=JobState.FAILED, exit_code=None, signal=11))["run_failed"]
    assert killed.sentence.startswith("The job was ended by SIGSEGV after 2 h")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState.TIMED_OUT, "ended at its time limit"),
        (JobState.OUT_OF_MEMORY, "because memory ran out"),
        (JobState.CANCELLED, "was cancelled"),
        (JobState.NODE_FAILED, "because a node failed"),
        (JobState.PREEMPTED, "another job had priority (preemption)"),
    ],
)
def test_every_end_has_its_sentence(state: JobState, words: str) -> None:
    assert words in findings(job(state=state, exit_code=None))["run_failed"].sentence


def test_jobstats_has_the_figures_of_each_node_and_gpu() -> None:
    one = Js1Node(cpu_s=36_000, core_count=6, memory_peak_bytes=20 * GIB,
                  memory_limit_bytes=30 * GIB, gpu_busy_percent={"1": 88.5},
                  gpu_memory_peak_bytes={"1": 10 * GIB},
                  gpu_memory_bytes={"1": 32 * GIB})  # fmt: skip
    two = Js1Node(cpu_s=7_200, core_count=4, memory_peak_bytes=2 * GIB,
                  memory_limit_bytes=10 * GIB, gpu_busy_percent={"0": 0.0})  # fmt: skip
    found = as_run(job(node_list="g[1-2]", nodes=2, gpus=2, admin_comment=summary(g1=one, g2=two)))
    first, second = found.summary.nodes
    assert (first.cpu_cores_used, second.cpu_cores_used) == (5.0, 1.0)
    assert (first.cores, second.cores) == (6, 4)
    assert (first.memory_peak_bytes, second.memory_limit_bytes) == (20 * GIB, 10 * GIB)
    (gpu,) = first.gpus
    busy, memory = gpu.stats["gpu_busy_percent"], gpu.stats["gpu_memory_used_bytes"]
    assert isinstance(busy, PartlyKnown)
    assert isinstance(memory, PartlyKnown)
    assert (gpu.position, busy.mean, busy.max) == (1, 88.5, None)
    assert (memory.mean, memory.max, gpu.device.memory_bytes) == (None, 10 * GIB, 32 * GIB)
    judged = findings(job(node_list="g[1-2]", nodes=2, gpus=2, time_limit_s=7300.0,
                          admin_comment=summary(g1=one, g2=two)))  # fmt: skip
    assert judged["gpu_never_used"].sentence == "GPU 0 on g2 was never used."


def test_without_jobstats_no_gpu_is_judged() -> None:
    found = as_run(job(gpus=4))
    assert len(found.summary.gpus) == 4
    assert all(isinstance(gpu.stats["gpu_busy_percent"], Missing) for gpu in found.summary.gpus)
    _, abstentions = judge_all(found.run, found.summary, load_policy())
    assert {"gpu_never_used", "gpu_low_use"} <= {one.kind for one in abstentions}
    assert not {kind for kind in findings(job(gpus=4)) if kind.startswith("gpu")}


def test_several_nodes_without_jobstats_have_only_sums() -> None:
    found = as_run(job(node_list="r[1-3]", nodes=3, gpus=3, cpu_s=7200.0))
    assert [node.cores for node in found.summary.nodes] == [4, 3, 3]
    assert sum(node.memory_limit_bytes for node in found.summary.nodes) == 40 * GIB  # type: ignore[misc]
    assert all(isinstance(node.cpu_cores_used, Missing) for node in found.summary.nodes)
    assert found.summary.cpu_s == 7200
    assert not {"serial_program", "cores_unused", "memory_overasked"} & set(
        findings(job(node_list="r[1-3]", nodes=3, cpu_s=7200.0))
    )


def test_gpus_that_cannot_be_divided_among_nodes_are_not_invented() -> None:
    found = as_run(job(node_list="r[1-2]", nodes=2, gpus=3))
    assert found.summary.gpus == ()
    assert [node.allocation.gpus_held for node in found.run.nodes] == [None, None]


@pytest.mark.parametrize(
    ("steps", "least", "most"),
    [
        ((step("batch", GIB),), GIB, GIB),
        ((step("batch", GIB), step("extern", 9 * GIB)), GIB, GIB),
        ((step("batch", GIB), step("0", 3 * GIB)), 3 * GIB, 4 * GIB),
        ((step("0", 3 * GIB, tasks=8, mean=2 * GIB),), 3 * GIB, 16 * GIB),
        ((), 0, 0),
    ],
)
def test_bounds_of_the_memory(steps: tuple[AccountedStep, ...], least: int, most: int) -> None:
    peaks = [one.memory_peak_bytes or 0 for one in steps if one.name != "extern"]
    use = memory_of(job(steps=steps, memory_peak_bytes=max(peaks, default=None)))
    assert use == (least, most)


def test_a_bound_is_not_a_figure() -> None:
    tasks = (step("0", 3 * GIB, tasks=8, mean=2 * GIB),)
    (node,) = as_run(job(steps=tasks, memory_peak_bytes=3 * GIB)).summary.nodes
    assert isinstance(node.memory_peak_bytes, Missing)
    assert findings(job(steps=tasks, memory_peak_bytes=3 * GIB)) == {}


def test_a_job_of_grid_engine_with_several_slots_has_bounds() -> None:
    use = memory_of(job(scheduler="grid_engine", source="qacct", steps=()))
    assert use == (30 * GIB, 300 * GIB)


def test_a_job_that_waits_has_no_end_and_no_nodes() -> None:
    waits = job(state=JobState.PENDING, node_list="", started_at=None, ended_at=None, cpu_s=None,
                elapsed_s=None, memory_peak_bytes=None, steps=())  # fmt: skip
    found = as_run(waits)
    assert (found.run.end, found.summary.nodes, found.state) == (None, (), RunState.RUNNING)
    assert isinstance(found.summary.cpu_s, Missing)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("r01g[01-03,7]", ["r01g01", "r01g02", "r01g03", "r01g7"]),
        ("", []),
        ("r01g[", []),
        ("a b", []),
    ],
)
def test_names_of_nodes(listed: str, names: list[str]) -> None:
    assert node_names(job(node_list=listed)) == names


def test_sources_name_what_was_used() -> None:
    plain = {one.figure for one in as_run(job()).sources}
    assert plain == {"state, times, allocated resources", "CPU time", "memory"}
    nothing = {one.figure for one in as_run(job(cpu_s=None, memory_peak_bytes=None)).sources}
    assert nothing == {"state, times, allocated resources"}


def test_resources_of_a_whole_node_beyond_the_request_do_not_count() -> None:
    """On a partition of whole nodes, a job that asks for one core gets all of them."""
    whole = job(cores=128, cores_requested=1, cpu_s=20_000.0, memory_bytes=240 * GIB,
                memory_requested_bytes=2 * GIB)  # fmt: skip
    assert findings(whole) == {}
    assert set(findings(job(cores=128, cores_requested=128, cpu_s=20_000.0))) == {"cores_unused"}
    # Two CPUs for a core: rounded up.
    assert set(findings(job(cores=4, cores_requested=3, cpu_s=1000.0))) == {"cores_unused"}


def test_a_long_step_without_a_sample_leaves_the_memory_open() -> None:
    unseen = AccountedStep(name="0", state=JobState.FAILED, tasks=1, elapsed_s=600.0)
    short = AccountedStep(name="1", state=JobState.COMPLETED, tasks=1, elapsed_s=5.0)
    peak = step("batch", 2 * GIB)
    assert memory_of(job(steps=(peak, short), memory_peak_bytes=2 * GIB)) == (2 * GIB, 2 * GIB)
    assert memory_of(job(steps=(peak, unseen), memory_peak_bytes=2 * GIB)) == (2 * GIB, 0)
    assert findings(job(steps=(peak, unseen), memory_peak_bytes=2 * GIB)) == {}
