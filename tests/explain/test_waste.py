"""Waste in jobs of the accounting: each kind on both sides of its threshold, and sums of many."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import planted_jobs
import pytest
from sacct_rows import lines as lines_of
from sacct_rows import rows

from teho.cli.jobs import _SORTS
from teho.explain.policy import load_policy
from teho.explain.waste.digest import digest_of
from teho.explain.waste.kind import limits_of
from teho.explain.waste.kinds import KINDS, waste_of
from teho.explain.waste.lines import lines_of_jobs, sorted_lines
from teho.explain.waste.recorded import GpuUse, Recordings, _gone_percent
from teho.explain.waste.use import use_of
from teho.jobs.js1 import Js1, Js1Node, encode_js1
from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.digest import Amounts, Digest, JobLine
from teho.model.job import JobState
from teho.model.member import GpuNodes, NodeShape
from teho.schedulers.slurm.accounting import read_jobs
from teho.show.build.digest import digest_document
from teho.show.text.document import render_text
from teho.store.read import read_run
from teho.units import GIB

POLICY = load_policy()
LIMITS = limits_of(POLICY)
UNTIL = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
SINCE = UNTIL - timedelta(days=7)
HOUR = 3600.0


def job(number: int = 1, **changes: Any) -> AccountedJob:
    """Return a job of one hour that used its 10 cores and 40 GiB well."""
    elapsed_s = changes.pop("elapsed_s", HOUR)
    end = changes.pop("ended_at", UNTIL - timedelta(hours=1))
    facts: dict[str, Any] = {
        "id": str(number),
        "number": str(number),
        "name": "train",
        "state": JobState.COMPLETED,
        "user": "anna",
        "scheduler": "slurm",
        "source": "sacct",
        "nodes": 1,
        "cores": 10,
        "gpus": 0,
        "memory_bytes": 40 * GIB,
        "memory_peak_bytes": 36 * GIB,
        "cpu_s": 9.5 * elapsed_s,
        "elapsed_s": elapsed_s,
        "time_limit_s": 1.1 * elapsed_s,
        "started_at": end - timedelta(seconds=elapsed_s),
        "ended_at": end,
        "exit_code": 0,
        "billing": 10,
    }
    facts |= changes
    peak = facts["memory_peak_bytes"]
    facts.setdefault("steps", tasks(1, peak) if peak else ())
    return AccountedJob(**facts)


def with_gpus(*busy: float, elapsed_s: float = HOUR, **changes: Any) -> AccountedJob:
    """Return a job with these means of its GPUs in %."""
    node = Js1Node(
        memory_peak_bytes=36 * GIB,
        memory_limit_bytes=40 * GIB,
        cpu_s=9.5 * elapsed_s,
        core_count=10,
        gpu_busy_percent={str(number): mean for number, mean in enumerate(busy)},
    )
    comment = encode_js1(Js1(nodes={"r01g01": node}, elapsed_s=int(elapsed_s)))
    return job(**{"gpus": len(busy), "admin_comment": comment, "elapsed_s": elapsed_s} | changes)


def tasks(count: int, peak: int = GIB) -> tuple[AccountedStep, ...]:
    return (AccountedStep(name="0", state=JobState.COMPLETED, tasks=count, memory_peak_bytes=peak,
                          memory_mean_bytes=peak),)  # fmt: skip


def found(one: AccountedJob) -> dict[str, Amounts]:
    return {waste.kind.key: waste.amounts for waste in waste_of(use_of(one), LIMITS)}


def test_a_job_that_used_what_it_asked_for_wastes_nothing() -> None:
    assert found(job()) == {}
    assert found(with_gpus(96.0, 91.5)) == {}


@pytest.mark.parametrize(
    ("wasteful", "fine", "kind", "amounts"),
    [
        (with_gpus(0.0, 90.0), with_gpus(90.0, 90.0), "gpu_never_used",
         Amounts(gpu_hours=1, billing_hours=5)),
        (with_gpus(25.0), with_gpus(25.1), "gpu_low_use",
         Amounts(gpu_hours=0.75, billing_hours=7.5)),
        (with_gpus(0.1), with_gpus(30.0), "gpu_low_use",
         Amounts(gpu_hours=0.999, billing_hours=9.99)),
        (job(cpu_s=2.49 * HOUR), job(cpu_s=2.51 * HOUR), "cores_unused",
         Amounts(core_hours=7.51, billing_hours=7.51)),
        (job(cpu_s=1.01 * HOUR), job(cpu_s=1.01 * HOUR, cores=2), "serial_program",
         Amounts(core_hours=8.99, billing_hours=8.99)),
        (job(cpu_s=0.49 * HOUR, name="interactive"), job(cpu_s=9 * HOUR, name="interactive"),
         "interactive_idle", Amounts(core_hours=9.51, billing_hours=9.51)),
        (job(memory_bytes=400 * GIB), job(memory_bytes=46 * GIB), "memory_overasked",
         Amounts(gib_hours=400 - 1.2 * 36)),
        (job(time_limit_s=1.7 * HOUR), job(time_limit_s=1.6 * HOUR), "time_overasked", Amounts()),
    ],
)  # fmt: skip
def test_both_sides_of_each_threshold(
    wasteful: AccountedJob, fine: AccountedJob, kind: str, amounts: Amounts
) -> None:
    wasted = found(wasteful)
    assert list(wasted) == [kind]
    for name in ("gpu_hours", "core_hours", "gib_hours"):
        assert getattr(wasted[kind], name) == pytest.approx(getattr(amounts, name))
    assert wasted[kind].billing_hours == pytest.approx(amounts.billing_hours)
    assert kind not in found(fine)


@pytest.mark.parametrize(
    ("idle_ends", "expected"),
    [
        ((33.4, 0.0), {"gpu_used_only_at_first": 0.334}),
        ((33.2, 0.0), {"gpu_low_use": 0.8}),
        ((90.0, 60.0), {"gpu_used_only_at_first": 1.5}),
        ((), {"gpu_low_use": 0.8}),
    ],
)
def test_gpus_that_were_used_only_at_first(
    idle_ends: tuple[float, ...], expected: dict[str, float]
) -> None:
    use = msgspec.structs.replace(use_of(with_gpus(20.0, 90.0)), gpu_idle_ends=idle_ends)
    hours = {waste.kind.key: waste.amounts.gpu_hours for waste in waste_of(use, LIMITS)}
    assert hours == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gone_ends", "idle_ends", "expected"),
    [
        ((90.0, 0.0), (92.0, 60.0), {"gpu_processes_gone": 0.9, "gpu_used_only_at_first": 0.6}),
        ((90.0, 70.0), (92.0, 60.0), {"gpu_processes_gone": 1.5}),
        ((33.2, 0.0), (92.0, 0.0), {"gpu_used_only_at_first": 0.92}),
        # Another job used the GPU then, or the recording does not have the use.
        ((90.0, 90.0), (0.0, 0.0), {"gpu_low_use": 0.8}),
        ((90.0, 90.0), (), {"gpu_low_use": 0.8}),
    ],
)
def test_gpus_that_were_kept_after_their_processes_had_ended(
    gone_ends: tuple[float, ...], idle_ends: tuple[float, ...], expected: dict[str, float]
) -> None:
    use = msgspec.structs.replace(
        use_of(with_gpus(20.0, 90.0)), gpu_idle_ends=idle_ends, gpu_gone_ends=gone_ends
    )
    hours = {waste.kind.key: waste.amounts.gpu_hours for waste in waste_of(use, LIMITS)}
    assert hours == pytest.approx(expected)


@pytest.mark.parametrize(
    ("processes", "percent"),
    [
        ([1.0, 1.0, 0.0, 0.0], 50.0),
        ([0.0, 1.0, 0.0, 0.0], 50.0),
        ([1.0, 0.0, 0.0, 0.5], 0.0),
        ([0.0, 0.0], 0.0),
        ([None, None], 0.0),
        ([], 0.0),
        # What was not recorded may have had a process.
        ([1.0, None, 0.0, None], 0.0),
        ([1.0, None, 0.0, 0.0], 0.0),
        ([1.0, None, 2.0, 0.0], 25.0),
    ],
)
def test_the_end_without_processes(processes: list[float | None], percent: float) -> None:
    assert _gone_percent(processes) == percent


@pytest.mark.parametrize(
    ("busy", "changes", "expected"),
    [
        ((3.0, 0.0), {"name": "bash"}, {"gpu_session_idle": 1.97}),
        ((4.9,), {"name": "sys/dashboard/sys/bc_jupyter"}, {"gpu_session_idle": 0.951}),
        ((5.0,), {"name": "bash"}, {"gpu_low_use": 0.95}),
        ((3.0, 90.0), {"name": "bash"}, {"gpu_low_use": 0.97}),
        ((3.0,), {"name": "train"}, {"gpu_low_use": 0.97}),
        ((0.0,), {"name": "bash", "elapsed_s": 1800.0}, {"gpu_never_used": 0.5}),
        ((30.0,), {"name": "bash"}, {}),
    ],
)
def test_idle_sessions_with_gpus(
    busy: tuple[float, ...], changes: dict[str, Any], expected: dict[str, float]
) -> None:
    wasted = found(with_gpus(*busy, **changes))
    assert {kind: amounts.gpu_hours for kind, amounts in wasted.items()} == pytest.approx(expected)


GPU_NODES: GpuNodes = {
    "gpu": (NodeShape(40, 4),),
    "mixed": (NodeShape(40, 4), NodeShape(64, 2)),
}


@pytest.mark.parametrize(
    ("changes", "blocked"),
    [
        ({"cores": 40}, 4),
        ({"cores": 37}, 1),
        ({"cores": 36}, 0),
        ({"cores": 80, "nodes": 2}, 8),
        ({"cores": 40, "partition": "mixed"}, 0),
        ({"cores": 64, "partition": "mixed"}, 2),
        ({"cores": 40, "partition": "small"}, 0),
        ({"cores": 40, "gpus": None}, 0),
        ({"cores": 40, "gpus": 1}, 0),
        ({"cores": 40, "nodes": None}, 0),
        ({"cores": 40, "elapsed_s": 599.0}, 0),
    ],
)
def test_jobs_without_gpus_that_leave_no_core_for_gpus(
    changes: dict[str, Any], blocked: int
) -> None:
    cores, elapsed_s = changes["cores"], changes.get("elapsed_s", HOUR)
    one = job(**{"partition": "gpu", "cpu_s": 0.9 * cores * elapsed_s} | changes)
    wasted = {w.kind.key: w for w in waste_of(use_of(one, None, GPU_NODES), LIMITS)}
    amounts = wasted["gpus_blocked"].amounts if wasted else Amounts()
    assert amounts.gpu_hours == blocked
    assert list(wasted) == (["gpus_blocked"] if blocked else [])
    assert list(waste_of(use_of(one), LIMITS)) == []


def test_gpus_that_no_job_could_use_are_not_in_the_sums() -> None:
    jobs = [job(1, partition="gpu", cores=40, cpu_s=36 * HOUR), with_gpus(0.0, number=2)]
    total = digest_of(
        jobs, POLICY, since=SINCE, until=UNTIL, selection="all users", gpu_nodes=GPU_NODES
    )
    assert [one.kind for one in total.waste] == ["gpus_blocked", "gpu_never_used"]
    assert total.wasted.gpu_hours == total.used.gpu_hours == 1
    assert "`teho plan --gpus 0 --cpus 40`" in total.changes[0].action
    text = render_text(digest_document(total), width=100, color=False, detail="why")
    assert "The sums do not include the GPUs" in " ".join(text.split())


@pytest.mark.parametrize(
    ("memory_gib", "kind"),
    [
        (((10.0, 40.0), (30.0, 40.0)), "gpu_too_large"),
        (((10.1, 40.0), (30.0, 40.0)), "gpu_low_use"),
        (((5.0, 37.9), (30.0, 40.0)), "gpu_low_use"),
        ((), "gpu_low_use"),
    ],
)
def test_large_gpus_for_small_work(memory_gib: tuple[tuple[float, float], ...], kind: str) -> None:
    memory = tuple((used * GIB, whole * GIB) for used, whole in memory_gib)
    use = msgspec.structs.replace(use_of(with_gpus(20.0, 90.0)), gpu_memory=memory)
    hours = {waste.kind.key: waste.amounts.gpu_hours for waste in waste_of(use, LIMITS)}
    assert hours == pytest.approx({kind: 0.8})


def test_the_memory_of_gpus_is_from_jobstats() -> None:
    node = Js1Node(
        gpu_busy_percent={"1": 5.0, "0": 90.0},
        gpu_memory_bytes={"0": 40 * GIB, "1": 80 * GIB},
        gpu_memory_peak_bytes={"0": 30 * GIB, "1": 2 * GIB},
    )
    one = job(gpus=2, admin_comment=encode_js1(Js1(nodes={"n": node}, elapsed_s=3600)))
    assert use_of(one).gpu_memory == ((2 * GIB, 80 * GIB), (30 * GIB, 40 * GIB))
    assert list(found(one)) == ["gpu_too_large"]
    lacking = msgspec.structs.replace(node, gpu_memory_peak_bytes={"1": 2 * GIB})
    one = job(gpus=2, admin_comment=encode_js1(Js1(nodes={"n": lacking}, elapsed_s=3600)))
    assert list(found(one)) == ["gpu_low_use"]


@pytest.mark.parametrize(
    "innocent",
    [
        job(elapsed_s=599.0, cpu_s=1.0),
        with_gpus(0.0, elapsed_s=599.0),
        job(cpu_s=None),
        job(cpu_s=None, name="interactive"),
        job(gpus=1),
        job(gpus=1, admin_comment="JS1:Short"),
        job(gpus=1, admin_comment="JS1:H4sIAAAA"),
        job(state=JobState.RUNNING, cpu_s=1.0),
        job(memory_peak_bytes=None, memory_bytes=400 * GIB),
        job(memory_bytes=None),
        job(cores=10, cpu_s=2.0 * HOUR, steps=tasks(10)),
        job(cores=2, cpu_s=0.4 * HOUR),
        job(memory_bytes=39 * GIB, memory_peak_bytes=GIB),
        job(memory_bytes=400 * GIB, memory_peak_bytes=10 * GIB, nodes=2),
        job(state=JobState.FAILED, time_limit_s=100 * HOUR),
        job(time_limit_s=None),
        job(cpu_s=1.0 * HOUR, gpus=1),
        job(elapsed_s=900.0, time_limit_s=100 * HOUR),
        job(state=JobState.NODE_FAILED, cpu_s=1.0 * HOUR, memory_bytes=400 * GIB),
        job(cores=128, cores_requested=10, cpu_s=1.0 * HOUR),
        job(memory_bytes=400 * GIB, memory_requested_bytes=40 * GIB),
    ],
)  # fmt: skip
def test_short_jobs_and_missing_figures_never_count(innocent: AccountedJob) -> None:
    assert found(innocent) == {}


def test_gpus_of_which_one_is_not_known_are_not_judged() -> None:
    assert found(msgspec.structs.replace(with_gpus(0.0), gpus=2)) == {}


def test_slurm_s_own_zero_is_no_proof() -> None:
    """gres/gpuutil is 0 too where Slurm cannot measure a GPU: MIG, AMD, GH200."""
    step = AccountedStep(
        name="0", state=JobState.COMPLETED, gpu_peak_percent=0.0, gpu_memory_peak_bytes=0
    )
    assert found(job(gpus=1, steps=(step,))) == {}


def test_the_peaks_of_all_tasks_bound_the_memory() -> None:
    """Ten tasks with 1 GiB each may have used 10 GiB, of 100 GiB with 10 cores."""
    steps = tasks(10)
    wasted = found(job(memory_bytes=100 * GIB, memory_peak_bytes=GIB, steps=steps))
    assert wasted["memory_overasked"].gib_hours == pytest.approx(100 - 4 * 10)
    many = job(memory_bytes=100 * GIB, memory_peak_bytes=GIB, steps=tasks(80), cores=80,
               cpu_s=80 * HOUR)  # fmt: skip
    assert found(many) == {}


def test_an_hour_of_a_core_counts_for_one_kind() -> None:
    """One core used in a session: idle, serial and unused at once."""
    wasted = found(job(cpu_s=1.0 * HOUR, name="bash", cores=40))
    assert list(wasted) == ["interactive_idle"]


def test_every_kind_names_a_threshold_that_exists() -> None:
    for kind in KINDS:
        assert kind.threshold in POLICY.thresholds[kind.rule]


# Lists.


def test_a_line_has_what_was_used_and_what_to_check() -> None:
    jobs = [
        job(1, cpu_s=1.0 * HOUR),
        job(2, state=JobState.FAILED, exit_code=3, elapsed_s=5.0),
        job(3, state=JobState.TIMED_OUT, exit_code=None),
        with_gpus(50.0, 100.0, number=4),
    ]
    one, two, three, four = lines_of_jobs(jobs, POLICY)
    assert (one.cores_used, one.look, one.waste) == (
        1.0,
        "1.0 of 10 cores used",
        ("serial_program",),
    )
    assert two.look == "exit code 3 after 5.0 s"
    assert (three.look, three.recordings) == ("ended at its time limit", ())
    assert (four.gpu_busy_percent, four.gpu_hours, four.look) == (75.0, 2.0, "")


def test_running_jobs_come_first() -> None:
    jobs = [
        job(1, ended_at=UNTIL - timedelta(days=2)),
        job(2, state=JobState.PENDING, elapsed_s=0.0, started_at=None),
        job(3, state=JobState.RUNNING),
        job(4),
    ]
    lines = list(lines_of_jobs(jobs, POLICY))
    assert [line.id for line in sorted_lines(lines, "start")] == ["3", "2", "4", "1"]


FIELDS = {
    "waste": "wasted_core_hours",
    "time": "elapsed_s",
    "cores": "core_hours",
    "gpus": "gpu_hours",
    "memory": "memory_most_bytes",
    "cost": "cost",
    "billing": "billing_hours",
}


@pytest.mark.parametrize("by", [by for by in _SORTS if by != "start"])
def test_jobs_are_sorted_by_the_value_of_the_option(by: str) -> None:
    def line(name: str, value: float, other_values: float) -> JobLine:
        values = dict.fromkeys(FIELDS.values(), other_values) | {FIELDS[by]: value}
        return JobLine(id=name, state=JobState.COMPLETED, **values)  # type: ignore[arg-type]

    unknown = JobLine(id="unknown", state=JobState.COMPLETED)
    large, small = line("large", 2.0, 1.0), line("small", 1.0, 2.0)
    assert sorted_lines([unknown, small, large], by) == [large, small, unknown]


def test_jobs_with_the_most_waste_come_first() -> None:
    jobs = [
        job(1, cores=400, cpu_s=390 * HOUR),
        with_gpus(0.0, number=2),  # 12 core-hours
        job(3, cores=40, cpu_s=1.0 * HOUR),
        job(4, cores=80, cpu_s=1.0 * HOUR),
        job(5, memory_bytes=400 * GIB),  # 90 core-hours
        job(6, state=JobState.RUNNING),
    ]
    lines = list(lines_of_jobs(jobs, POLICY))
    assert [line.id for line in sorted_lines(lines, "waste")] == ["6", "5", "4", "3", "2", "1"]


def test_the_waste_of_the_lines_adds_up_to_the_digest() -> None:
    jobs = [
        *clean(range(100), seed=7),
        job(201, cpu_s=1.0 * HOUR),
        job(202, memory_bytes=400 * GIB),
        job(203, partition="gpu", cores=40, cpu_s=36 * HOUR),
        with_gpus(0.0, 90.0, 20.0, number=204),
    ]
    lines = list(lines_of_jobs(jobs, POLICY, gpu_nodes=GPU_NODES))
    total = digest_of(
        jobs, POLICY, since=SINCE, until=UNTIL, selection="all users", gpu_nodes=GPU_NODES
    )
    for name in ("gpu_hours", "core_hours", "gib_hours"):
        of_lines = [getattr(line, f"wasted_{name}") for line in lines]
        assert None in of_lines
        assert sum(filter(None, of_lines)) == pytest.approx(getattr(total.wasted, name))
        assert getattr(total.wasted, name) > 0


def test_waste_that_is_not_judged_is_not_zero() -> None:
    known = with_gpus(90.0)
    jobs = [
        job(), known, job(elapsed_s=599.0), job(state=JobState.RUNNING), job(gpus=None),
        job(gpus=1), job(cpu_s=None), job(memory_peak_bytes=None), job(nodes=2),
        job(cores=128, cores_requested=10),
    ]  # fmt: skip
    wasted = [
        (line.wasted_gpu_hours, line.wasted_core_hours, line.wasted_gib_hours)
        for line in lines_of_jobs(jobs, POLICY)
    ]
    nothing = (None, None, None)
    assert wasted == [
        (0, 0, 0), (0, None, None), nothing, nothing, (None, 0, 0),
        nothing, (0, None, 0), (0, 0, None), (0, 0, None), (0, None, 0),
    ]  # fmt: skip


# Digests.


def digest(jobs: list[AccountedJob]) -> Digest:
    return digest_of(jobs, POLICY, since=SINCE, until=UNTIL, selection="all users")


def clean(numbers: range, seed: int) -> Iterator[AccountedJob]:
    """Yield jobs that are well used, in all sizes, some with figures that are missing."""
    draw = random.Random(seed)
    for number in numbers:
        cores = draw.choice([1, 2, 4, 10, 40, 128])
        elapsed_s = draw.uniform(5, 40 * HOUR)
        gpus = draw.choice([0, 0, 0, 1, 4])
        facts: dict[str, Any] = {
            "number": number,
            "id": str(number),
            "cores": cores,
            "elapsed_s": elapsed_s,
            "cpu_s": draw.choice([None, draw.uniform(0.3, 1.0) * cores * elapsed_s]),
            "memory_bytes": 4 * GIB * cores,
            "memory_peak_bytes": draw.choice([None, draw.randrange(1, 4 * GIB * cores)]),
            "time_limit_s": elapsed_s * draw.uniform(1, 1.6),
            "user": draw.choice(["anna", "bo"]),
            "name": draw.choice(["train", "bash", "sweep_12"]),
        }
        if facts["cpu_s"] is not None and facts["cpu_s"] / elapsed_s <= 1.02 and cores > 2:
            facts["cpu_s"] = 0.9 * cores * elapsed_s
        if gpus and draw.random() < 0.5:
            means = [draw.uniform(26, 100) for _ in range(gpus)]
            yield with_gpus(*means, **facts)
        else:
            yield job(**facts | {"gpus": gpus})


def accounted(records: Iterable[dict[str, str]]) -> list[AccountedJob]:
    """Return the jobs of these rows of sacct."""
    return [*read_jobs(lines_of(rows(*records)))]


def an_end(draw: random.Random) -> int:
    return int(UNTIL.timestamp()) - draw.randrange(6 * 86400)


def test_no_clean_job_is_accused() -> None:
    draw = random.Random(1)
    jobs = accounted(
        row
        for number in range(1, 1001)
        for row in planted_jobs.clean_job(str(number), draw, an_end(draw))
    )
    total = digest_of(
        jobs, POLICY, since=SINCE, until=UNTIL, selection="all users", gpu_nodes=GPU_NODES
    )
    assert total.jobs == len(jobs) > 1000
    assert total.waste == ()
    assert total.changes == ()
    assert (total.wasted.gpu_hours, total.wasted.core_hours, total.wasted.gib_hours) == (0, 0, 0)
    assert min(total.unjudged_gpu_hours, total.unjudged_core_hours, total.short_jobs) > 0
    assert len(total.endings) > 8
    lines = [*lines_of_jobs(jobs, POLICY, gpu_nodes=GPU_NODES)]
    assert [line.id for line in lines if line.waste] == []
    wasted = {hours for line in lines for hours in (line.wasted_gpu_hours, line.wasted_core_hours)}
    assert wasted == {0, None}


def test_planted_waste_is_found_to_the_last_hour() -> None:
    draw = random.Random(2)
    planted: dict[str, list[planted_jobs.Planted]] = defaultdict(list)
    rows_of = [planted_jobs.clean_job(str(number), draw, an_end(draw)) for number in range(1, 601)]
    for number in range(1001, 1201):
        records, truth = planted_jobs.wasteful_job(str(number), draw, an_end(draw))
        rows_of.append(records)
        planted[truth.kind].append(truth)
    draw.shuffle(rows_of)
    total = digest(accounted(row for records in rows_of for row in records))
    assert {one.kind: one.jobs for one in total.waste} == {
        kind: len(truths) for kind, truths in planted.items()
    }
    assert len(planted) == planted_jobs.KINDS
    for name in ("gpu_hours", "core_hours", "gib_hours"):
        for one in total.waste:
            truth_hours = sum(getattr(truth, name) for truth in planted[one.kind])
            assert getattr(one.amounts, name) == pytest.approx(truth_hours, rel=1e-4), one.kind
        whole = sum(getattr(truth, name) for truths in planted.values() for truth in truths)
        assert getattr(total.wasted, name) == pytest.approx(whole, rel=1e-4)


def test_what_would_save_most_comes_first_with_what_to_change() -> None:
    jobs = [job(n, cores=40, cpu_s=2.0 * HOUR, name=f"sweep-{n}") for n in range(20)]
    jobs += [with_gpus(0.0, 95.0, number=50)]
    jobs += [job(60, cpu_s=1.0 * HOUR, name="small")]
    total = digest(jobs)
    first, second, third = total.changes
    assert (first.kind, first.jobs) == ("cores_unused", 20)
    assert first.sentence == "20 jobs named sweep-N: few of the cores were used."
    assert "`--cpus-per-task=2`" in first.action
    assert first.saves.core_hours == pytest.approx(20 * 38)
    assert second.kind == "gpu_never_used"
    assert "--gpus-per-node=1" in second.action
    assert third.kind == "serial_program"


def test_the_period_before_is_compared() -> None:
    old = SINCE - timedelta(days=1)
    jobs = [job(1, cpu_s=1.0 * HOUR), job(2), job(3, ended_at=old, cpu_s=1.0 * HOUR)]
    older = job(4, ended_at=SINCE - timedelta(days=8))
    total = digest([*jobs, older])
    assert total.jobs == 2
    assert total.used.core_hours == 20
    assert total.wasted.core_hours == pytest.approx(9)
    assert total.used_before is not None
    assert total.wasted_before is not None
    assert (total.used_before.core_hours, total.wasted_before.core_hours) == (10, pytest.approx(9))
    text = render_text(digest_document(total), width=100, color=False)
    assert "Cores 20 core-hours (45 % wasted, 90 % in the period before)" in " ".join(text.split())


def test_jobs_that_fail_at_once_again_and_again() -> None:
    failed = {"state": JobState.FAILED, "exit_code": 1, "elapsed_s": 20.0}
    four = digest([job(n, name=f"run{n}", **failed) for n in range(4)])
    assert four.waste == ()
    five = digest([job(n, name=f"run{n}", **failed) for n in range(5)])
    (kind,) = five.waste
    assert (kind.kind, kind.jobs) == ("fails_at_start", 5)
    assert five.wasted.core_hours == pytest.approx(5 * 10 * 20 / 3600)
    others = digest([job(n, name="abcde"[n], **failed) for n in range(5)])
    assert others.waste == ()


def test_people_and_endings_add_up_to_the_whole() -> None:
    jobs = [*clean(range(200), seed=5), job(999, cpu_s=1.0 * HOUR, user="cleo", cores=40)]
    total = digest(jobs)
    for of in (total.people, total.endings):
        assert sum(one.jobs for one in of) == total.jobs
        for name in ("gpu_hours", "core_hours"):
            whole = sum(getattr(one.used, name) for one in of)
            assert whole == pytest.approx(getattr(total.used, name))
    assert total.people[0].user == "cleo"


def test_a_run_before_the_job_was_queued_again_counts_as_use() -> None:
    total = digest([job(1, state=JobState.PENDING, exit_code=None, cpu_s=1.0 * HOUR)])
    assert (total.jobs, total.used.core_hours, total.waste) == (1, 10, ())
    text = render_text(digest_document(total), width=80, color=False, detail="why")
    assert "queued again" in text
    assert "did not end" not in text


def test_a_job_that_still_runs_is_not_judged() -> None:
    total = digest([job(1, state=JobState.RUNNING, ended_at=UNTIL, cpu_s=None)])
    assert (total.jobs, total.used.core_hours) == (1, 10)
    assert (total.unjudged_core_hours, total.waste) == (0, ())


def test_billing_is_summed_if_it_is_known() -> None:
    wasteful = [job(1, cpu_s=1.0 * HOUR), job(2, memory_bytes=400 * GIB), job(3, time_limit_s=9e9)]
    total = digest(wasteful)
    assert total.used.billing_hours == 30
    assert total.wasted.billing_hours == pytest.approx(9)
    by_kind = {one.kind: one.amounts.billing_hours for one in total.waste}
    assert by_kind == {
        "serial_program": pytest.approx(9), "memory_overasked": None, "time_overasked": None,
    }  # fmt: skip
    unknown = digest([*wasteful, job(4, cpu_s=1.0 * HOUR, billing=None)])
    assert unknown.used.billing_hours is None
    assert unknown.wasted.billing_hours is None


def test_the_cost_is_by_the_formula_of_the_cluster() -> None:
    small = {"cluster": "puhti", "partition": "small", "node_list": "r01c01"}
    gpu = {"cluster": "puhti", "partition": "gpu", "node_list": "r01g01"}
    jobs = [
        job(1, cores=40, cpu_s=1.0 * HOUR, **small),
        job(2, cores=40, cpu_s=39.0 * HOUR, **small),
        with_gpus(0.0, 90.0, number=3, **gpu),
        job(4),
    ]
    total = digest(jobs)
    # 40 cores + 40 GiB × 0.1; 2 GPUs × 60 + 10 cores + 40 GiB × 0.1
    assert total.used.costs == {"CPU BU": pytest.approx(88), "GPU BU": pytest.approx(134)}
    of_cores, of_gpu = pytest.approx(44 * 39 / 40), pytest.approx(134 / 2)
    assert total.wasted.costs == {"CPU BU": of_cores, "GPU BU": of_gpu}
    assert {one.kind: one.amounts.costs for one in total.waste} == {
        "serial_program": {"CPU BU": of_cores}, "gpu_never_used": {"GPU BU": of_gpu},
    }  # fmt: skip
    assert [one.saves.costs for one in total.changes] == [{"CPU BU": of_cores}, {"GPU BU": of_gpu}]
    assert [one.wasted for one in total.people] == [total.wasted]
    assert total.cost_unknown_jobs == 1
    text = " ".join(render_text(digest_document(total), width=100, color=False).split())
    assert "Wasted: 1 GPU-hour, 39 core-hours (42.9 CPU BU, 67 GPU BU)." in text
    assert "Cost 88 CPU BU (49 % wasted) · 134 GPU BU (50 % wasted)" in text
    assert "This would have saved 39 core-hours (42.9 CPU BU)." in text
    assert "several requested – 39.0 42.9 CPU BU GPUs that were never used 1.0 – 67 GPU BU" in text
    assert "The cost of 1 job is not known" in text
    assert "billing-hours" not in text
    unknown = digest([job(4)])
    assert (unknown.used.costs, unknown.cost_unknown_jobs) == ({}, 1)
    assert "billing-hours" in render_text(digest_document(unknown), width=100, color=False)


def test_the_cost_of_the_period_before_is_compared() -> None:
    small = {"cluster": "puhti", "partition": "small", "node_list": "r01c01", "cores": 40}
    old = SINCE - timedelta(days=1)
    total = digest([
        job(1, cpu_s=39.0 * HOUR, **small), job(2, cpu_s=1.0 * HOUR, ended_at=old, **small)
    ])  # fmt: skip
    text = " ".join(render_text(digest_document(total), width=100, color=False).split())
    assert "Cost 44 CPU BU (0 % wasted, 98 % in the period before)" in text


@pytest.mark.parametrize("elapsed_s", [0.0, 36.0])
def test_jobs_with_gpus_that_fail_at_once_waste_all_their_cost(elapsed_s: float) -> None:
    failed = {"state": JobState.FAILED, "exit_code": 1, "elapsed_s": elapsed_s, "gpus": 2}
    gpu = {"cluster": "puhti", "partition": "gpu", "node_list": "r01g01"}
    total = digest([job(n, **failed, **gpu) for n in range(5)])
    (kind,) = total.waste
    assert kind.amounts.costs == {"GPU BU": pytest.approx(5 * 134 * elapsed_s / 3600)}
    assert kind.amounts.costs == total.wasted.costs == total.used.costs


def test_a_summary_that_lacks_a_node_bounds_nothing() -> None:
    node = Js1Node(memory_peak_bytes=GIB, cpu_s=9.5 * HOUR)
    comment = encode_js1(Js1(nodes={"a": node}))
    whole = use_of(job(admin_comment=comment))
    half = use_of(job(admin_comment=comment, nodes=2))
    assert (whole.memory_least_bytes, whole.memory_most_bytes) == (GIB, GIB)
    assert (half.memory_least_bytes, half.memory_most_bytes) == (36 * GIB, 36 * GIB)


# Recordings.


EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


@pytest.fixture
def recorded(home: Path) -> tuple[Recordings, AccountedJob]:
    """Return a recording of four GPUs, of which one was idle, and its job without Jobstats."""
    path = home / "runs" / "20261120-101944-train-aaaa"
    shutil.copytree(EXAMPLE, path)
    run = read_run(path)
    assert run.end is not None
    nodes = tuple(
        msgspec.structs.replace(
            node, allocation=msgspec.structs.replace(node.allocation, job_id="4711")
        )
        for node in run.nodes
    )
    run = msgspec.structs.replace(run, nodes=nodes)
    gpus = sum(len(node.devices) for node in run.nodes)
    elapsed_s = run.end.elapsed_s * 1.05
    one = job(4711, gpus=gpus, elapsed_s=elapsed_s, started_at=run.started_at,
              ended_at=run.started_at + timedelta(seconds=elapsed_s))  # fmt: skip
    return Recordings(home, POLICY, [(path, run)]), one


def test_a_recording_has_the_gpus_that_the_accounting_lacks(
    recorded: tuple[Recordings, AccountedJob],
) -> None:
    recordings, one = recorded
    uses = recordings.gpu_uses(one)
    means = [use.mean_percent for use in uses]
    assert len(means) == one.gpus
    assert min(means) < 1 < max(means)
    assert recordings.gpu_uses(one) == uses
    assert recordings.ids(one) == ("20261120-101944-train-aaaa",)
    (line,) = lines_of_jobs([one], POLICY, recordings)
    assert line.gpu_busy_percent == pytest.approx(sum(means) / len(means))
    assert line.recordings == recordings.ids(one)
    (bare,) = lines_of_jobs([one], POLICY)
    assert bare.gpu_busy_percent is None


def test_a_recording_has_the_energy_of_idle_gpus(
    recorded: tuple[Recordings, AccountedJob],
) -> None:
    recordings, one = recorded
    never = [use for use in recordings.gpu_uses(one) if not use.mean_percent]
    busy = [use for use in recordings.gpu_uses(one) if use.mean_percent > 50]
    assert never
    assert busy
    assert all(use.idle_energy_j is None for use in busy)
    energy_j = sum(use.idle_energy_j or 0.0 for use in never)
    assert energy_j > 0
    short = LIMITS._replace(elapsed_min_s=0.0)
    wasted = {w.kind.key: w.amounts.energy_j for w in waste_of(use_of(one, recordings), short)}
    assert wasted["gpu_never_used"] == pytest.approx(energy_j)


class Measured(Recordings):
    """A recording of two GPUs: one was never used, one was idle for the last half."""

    def gpu_uses(self, job: AccountedJob) -> tuple[GpuUse, ...]:
        return (
            GpuUse(0.0, job.elapsed_s or 0.0, 0.0, 0.0, 360_000.0),
            GpuUse(48.0, job.elapsed_s or 0.0, 50.0, 50.0, 90_000.0),
        )


def test_the_digest_adds_up_the_energy_of_idle_gpus(home: Path) -> None:
    jobs = [job(1, gpus=2), job(2, gpus=2)]
    total = digest_of(
        jobs, POLICY, since=SINCE, until=UNTIL, selection="anna", recordings=Measured(home, POLICY)
    )
    by_kind = {one.kind: one.amounts.energy_j for one in total.waste}
    assert by_kind == {"gpu_never_used": 720_000.0, "gpu_processes_gone": 180_000.0}
    assert total.wasted.energy_j == 900_000.0
    text = render_text(digest_document(total), width=100, color=False)
    assert "Energy of idle GPUs 250 Wh (only of jobs that Teho recorded)" in " ".join(text.split())
    bare = digest([with_gpus(0.0)])
    assert bare.wasted.gpu_hours == 1
    assert bare.wasted.energy_j is None


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "4712"},
        {"elapsed_s": 10 * HOUR},
        {"gpus": 1},
        {"started_at": UNTIL + timedelta(days=99), "ended_at": UNTIL + timedelta(days=100)},
        {"started_at": None},
    ],
)
def test_a_recording_of_another_job_or_of_a_part_says_nothing(
    recorded: tuple[Recordings, AccountedJob], changes: dict[str, Any]
) -> None:
    recordings, one = recorded
    assert recordings.gpu_uses(msgspec.structs.replace(one, **changes)) == ()


@pytest.mark.parametrize("is_automatic", [True, False])
def test_a_recorder_that_was_ended_with_its_job_has_the_gpus_too(
    recorded: tuple[Recordings, AccountedJob], home: Path, is_automatic: bool
) -> None:
    recordings, one = recorded
    [path] = (home / "runs").iterdir()
    run = msgspec.structs.replace(read_run(path), end=None, is_automatic=is_automatic)
    nodes = tuple(
        msgspec.structs.replace(
            node, allocation=msgspec.structs.replace(node.allocation, job_id="4711")
        )
        for node in run.nodes
    )
    cut = Recordings(home, POLICY, [(path, msgspec.structs.replace(run, nodes=nodes))])
    assert len(cut.gpu_uses(one)) == (one.gpus if is_automatic else 0)
    long = msgspec.structs.replace(one, elapsed_s=(one.elapsed_s or 0) * 1.1)
    assert recordings.gpu_uses(one) != () == cut.gpu_uses(long)
