"""Building blocks of the named runs in `scenarios.py`.

Means, maxima and series agree with each other: all come from one list of bins.
"""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Union

from teho.explain.energy import EnergyReadings, weigh
from teho.explain.judge import judge_all, judge_by
from teho.explain.policy import load_policy
from teho.explain.rule import Rule, kind_of
from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.finding import Abstention, Finding
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, Clock, End, Node, Run, Step, Task
from teho.model.summary import Figure, GpuSummary, NodeSummary, Stat, Summary
from teho.units import GIB

BINS = 60
STARTED = datetime(2026, 11, 20, 8, 0, tzinfo=timezone.utc)

Bins = list[Union[float, None]]
Given = Union[float, Sequence[Union[float, None]], Missing]
"""A signal: the same in every bin, bin by bin (BINS,), or missing."""

UNSUPPORTED = Missing(Reason.UNSUPPORTED, "not offered under MIG")
FORBIDDEN = Missing(Reason.FORBIDDEN, "the driver allows it to root only")


def bins_of(given: Given) -> Bins:
    if isinstance(given, Missing):
        return []
    return list(given) if isinstance(given, Sequence) else [float(given)] * BINS


def stat_of(given: Given, elapsed_s: float) -> Stat | Missing:
    if isinstance(given, Missing):
        return given
    seen = [value for value in bins_of(given) if value is not None]
    if not seen:
        return Missing(Reason.UNRECORDED)
    mean, spread = statistics.fmean(seen), statistics.pstdev(seen)
    return Stat(mean, spread, max(seen), min(seen), covered_s=elapsed_s * len(seen) / BINS)


def repeated(*runs: tuple[float | None, int]) -> Bins:
    """Join stretches: `repeated((95, 40), (0, 20))` is 40 bins of 95 and 20 of 0."""
    return [value for value, count in runs for _ in range(count)]


class NodePart:
    """One node's signals, before they are made into a `Node` and a `NodeSummary`."""

    def __init__(
        self,
        name: str = "r01g01",
        *,
        cores: int = 40,
        cores_used: Given = 30.0,
        gpus: Sequence[Mapping[str, Given]] = (),
        signals: Mapping[str, Given] | None = None,
        memory_peak: Figure = 300.0 * GIB,
        memory_limit: Figure = 360.0 * GIB,
        memory_source: str = "cgroup",
        oom_kills: Figure = 0.0,
        allocation: Allocation | None = None,
        scheduler: str | None = "slurm",
        gpu_memory_bytes: int | None = 32 * GIB,
        vendor: str = "nvidia",
        model: str = "",
        rates: Mapping[str, Given] | None = None,
        power_limit_w: float | None = None,
        power_default_w: float | None = None,
        ranks: Sequence[int] = (),
        clock: Clock | None = None,
        last_s: float | None = None,
        time_limit_s: float | None = 4200.0,
        started_s: float | None = 95.0,
    ) -> None:
        self.name, self.cores, self.gpus = name, cores, gpus
        self.rates = dict(rates or {})
        self.power_limit_w, self.ranks, self.clock = power_limit_w, tuple(ranks), clock
        self.last_s, self.started_s = last_s, started_s
        self.power_default_w = power_default_w
        self.cores_used, self.memory_peak = cores_used, memory_peak
        self.memory_limit, self.memory_source, self.oom_kills = (
            memory_limit,
            memory_source,
            oom_kills,
        )
        self.gpu_memory_bytes, self.vendor, self.model = gpu_memory_bytes, vendor, model
        self.signals: dict[str, Given] = {
            "cpu_busy_percent": share_of(cores_used, cores),
            "cpu_iowait_percent": 0.5,
            "load_1min": 30.0,
            "job_processes": 9.0,
            "job_threads": 120.0,
            "job_runnable_threads": 30.0,
            "job_memory_bytes": 280.0 * GIB,
            "job_cache_bytes": 20.0 * GIB,
            **(signals or {}),
        }
        self.allocation = allocation or (
            Allocation(
                scheduler=scheduler,
                job_id="4711",
                cores=tuple(range(cores)),
                cores_asked=cores,
                gpus_held=len(gpus),
                memory_limit_source=memory_source,
                time_limit_s=time_limit_s,
            )
            if scheduler
            else Allocation(cores=tuple(range(cores)))
        )

    def devices(self) -> tuple[Device, ...]:
        usual = "Tesla V100-SXM2-32GB" if self.vendor == "nvidia" else "AMD Instinct MI250X"
        return tuple(
            Device(
                id=f"GPU-{self.name}-{position}",
                index=position,
                name=self.model or usual,
                vendor=self.vendor,
                memory_bytes=self.gpu_memory_bytes,
                power_limit_w=self.power_limit_w,
                power_default_w=self.power_default_w,
            )
            for position in range(len(self.gpus))
        )

    def node(self, period_s: float) -> Node:
        return Node(
            name=self.name,
            started_at=STARTED,
            started_s=self.started_s,
            period_s=period_s,
            cores=tuple(range(self.cores)),
            core_count_node=self.cores,
            memory_node_bytes=384 * GIB,
            cpu_model="Intel Xeon Gold 6230",
            allocation=self.allocation,
            devices=self.devices(),
            ranks=self.ranks,
            clock=self.clock,
            sealed=self.last_s is None,
        )

    def summary(self, elapsed_s: float) -> NodeSummary:
        used = stat_of(self.cores_used, elapsed_s)
        rates = {metric: stat_of(given, elapsed_s) for metric, given in self.rates.items()}
        last_s = elapsed_s if self.last_s is None else self.last_s
        return NodeSummary(
            name=self.name,
            covered_s=last_s,
            first_s=0.0,
            last_s=last_s,
            cores=self.cores,
            stats={metric: stat_of(given, elapsed_s) for metric, given in self.signals.items()},
            totals={
                "job_cpu_s": used.mean * elapsed_s if isinstance(used, Stat) else used,
                "oom_kills": self.oom_kills,
                "job_ended_cpu_s": 0.0,
                "tasks_started": 0.1 * elapsed_s,
                **{
                    metric: rate.mean * rate.covered_s if isinstance(rate, Stat) else rate
                    for metric, rate in rates.items()
                },
            },
            core_mean_percent=tuple(100.0 if core == 0 else 5.0 for core in range(self.cores)),
            cpu_cores_used=used.mean if isinstance(used, Stat) else used,
            memory_peak_bytes=self.memory_peak,
            memory_limit_bytes=self.memory_limit,
            memory_limit_source=""
            if isinstance(self.memory_limit, Missing)
            else self.memory_source,
            gpus=tuple(
                gpu_summary(device, position, given, elapsed_s)
                for position, (device, given) in enumerate(
                    zip(self.devices(), self.gpus, strict=True)
                )
            ),
            series=series_of({**self.signals, **self.rates, "job_cpu_s": self.cores_used}),
        )


def share_of(used: Given, cores: int) -> Given:
    """Return how busy cores are that only the program uses; 75 % if its use is not known."""
    return 75.0 if isinstance(used, Missing) or not cores else times(used, 100 / cores)


def series_of(signals: Mapping[str, Given]) -> dict[str, Bins]:
    return {
        metric: bins_of(given)
        for metric, given in signals.items()
        if not isinstance(given, Missing)
    }


def gpu(busy: Given = 92.0, **signals: Given) -> dict[str, Given]:
    """Return one GPU's signals: a healthy one's, but for what is given."""
    return {
        "gpu_busy_percent": busy,
        "gpu_sm_active_percent": times(busy, 0.95),
        "gpu_sm_occupancy_percent": 62.0,
        "gpu_tensor_percent": 31.0,
        "gpu_fp64_percent": 0.2,
        "gpu_fp32_percent": 18.0,
        "gpu_fp16_percent": 2.0,
        "gpu_dram_percent": 42.0 if isinstance(busy, Missing) else times(busy, 42 / 92),
        "gpu_memory_used_bytes": 17.0 * GIB,
        "gpu_power_w": 230.0,
        "gpu_temperature_c": 62.0,
        "gpu_thermal_throttle_percent": 0.0,
        "gpu_power_throttle_percent": 3.0,
        "gpu_pcie_receive_bytes_per_s": 1.2e9,
        "gpu_pcie_send_bytes_per_s": 0.2e9,
        "gpu_job_processes": 1.0,
        "gpu_job_memory_bytes": 16.5 * GIB,
        **signals,
    }


def times(given: Given, factor: float) -> Given:
    """Return a signal that is another one times a factor, in every bin."""
    if isinstance(given, Missing):
        return given
    if isinstance(given, Sequence):
        return [None if value is None else factor * value for value in given]
    return factor * given


DEEP = tuple(
    f"gpu_{what}"
    for what in (
        "sm_active_percent",
        "sm_occupancy_percent",
        "tensor_percent",
        "fp64_percent",
        "fp32_percent",
        "fp16_percent",
        "dram_percent",
        "pcie_receive_bytes_per_s",
        "pcie_send_bytes_per_s",
    )
)
"""What only some GPUs tell: how much of them was used, and how."""


def untouched_gpu() -> dict[str, Given]:
    """Return the signals of a GPU that nothing ran on."""
    return gpu(
        0.0,
        gpu_memory_used_bytes=0.5 * GIB,
        gpu_power_w=40.0,
        gpu_temperature_c=30.0,
        gpu_power_throttle_percent=0.0,
        **dict.fromkeys(DEEP, 0.0),
        gpu_job_processes=0.0,
        gpu_job_memory_bytes=0.0,
    )


def gpu_summary(
    device: Device, position: int, signals: Mapping[str, Given], elapsed_s: float
) -> GpuSummary:
    power = stat_of(signals["gpu_power_w"], elapsed_s)
    seen = EnergyReadings(
        counter=power.mean * elapsed_s if isinstance(power, Stat) else power,
        power=power,
        rows=BINS,
        elapsed_s=elapsed_s,
        unused_w=None,
        counter_bins=[],
        power_bins=[],
        bin_s=elapsed_s / BINS,
    )
    energy_j, source, energy = weigh(device, seen)
    return GpuSummary(
        device=device,
        position=position,
        stats={metric: stat_of(given, elapsed_s) for metric, given in signals.items()},
        energy_j=energy_j,
        energy_source=source,
        energy=energy,
        series=series_of(signals),
    )


def scenario(
    *parts: NodePart,
    elapsed_s: float = 3600.0,
    period_s: float = 1.0,
    command: Sequence[str] = ("./train", "--epochs", "90"),
    environment: Mapping[str, str] | None = None,
    peak_process_bytes: int = 0,
    step: Step | None = None,
    tasks: Sequence[Task] = (),
) -> tuple[Run, Summary]:
    """Make a finished run of these nodes; a step that lacks a task's end has none itself."""
    nodes = tuple(part.summary(elapsed_s) for part in parts)
    cpu_s = [node.totals["job_cpu_s"] for node in nodes]
    known = [value for value in cpu_s if not isinstance(value, Missing)]
    total: Figure = sum(known) if known and len(known) == len(cpu_s) else Missing(Reason.UNRECORDED)
    run = Run(
        format=FORMAT_VERSION,
        id="20261120-080000-train",
        command=tuple(command),
        directory="/scratch/project/train",
        started_at=STARTED,
        host=parts[0].name if parts else "r01g01",
        period_s=period_s,
        environment=dict(environment or {}),
        versions={"teho": "0.1.0"},
        step=step,
        tasks=tuple(tasks),
        end=None
        if step is not None and len(tasks) < step.task_count
        else End(
            at=STARTED + timedelta(seconds=elapsed_s),
            elapsed_s=elapsed_s,
            exit_code=next((t.end.exit_code for t in tasks if t.end.exit_code != 0), 0),
            signal=next((t.end.signal for t in tasks if t.end.signal), None),
            cpu_s=0.0 if isinstance(total, Missing) else total,
            peak_process_bytes=peak_process_bytes,
        ),
        nodes=tuple(part.node(period_s) for part in parts),
    )
    summary = Summary(
        elapsed_s=elapsed_s,
        cpu_s=total,
        bin_s=elapsed_s / BINS,
        bin_count=BINS,
        nodes=nodes,
    )
    return run, summary


def step(tasks: int, *hosts: str) -> Step:
    """Return a step of this many tasks that Slurm started on these hosts."""
    return Step(
        key="slurm-4711.0",
        started_by="Slurm",
        began_on=hosts[0] if hosts else "r01g01",
        task_count=tasks,
        node_count=len(hosts) or None,
        hosts=hosts,
    )


def task(
    rank: int,
    node: str = "r01g01",
    *,
    after_s: float = 3600.0,
    exit_code: int | None = 0,
    signal: int | None = None,
    cpu_s: float = 3000.0,
    peak_process_bytes: int = 9 * GIB,
) -> Task:
    """Return a task as its supervisor told of it, by the run's own clock."""
    return Task(
        rank=rank,
        local_rank=0,
        node=node,
        pid=1000 + rank,
        started_at=STARTED,
        end=End(
            at=STARTED + timedelta(seconds=after_s),
            elapsed_s=after_s,
            exit_code=None if signal else exit_code,
            signal=signal,
            cpu_s=cpu_s,
            peak_process_bytes=peak_process_bytes,
        ),
    )


def needs_a_probed_program(rule: Rule) -> bool:
    """Tell whether a rule judges what a program did with its time."""
    # Of these, only the advice or an exception depends on the program.
    if kind_of(rule) in {"cpu_busy_gpu_idle", "gpu_low_occupancy", "gpu_low_use"}:
        return False
    return inspect.signature(rule.judge).parameters["context"].annotation == "ProgramContext"


def judged(rule: Rule, made: tuple[Run, Summary]) -> list[Finding] | Abstention:
    """Judge a run by one rule with the shipped thresholds, nothing muted."""
    return judge_by(rule, *made, load_policy())


def found(rule: Rule, made: tuple[Run, Summary]) -> Finding:
    """Return the one finding that there must be."""
    verdict = judged(rule, made)
    assert isinstance(verdict, list), verdict
    assert len(verdict) == 1, verdict
    return verdict[0]


def kinds_of(made: tuple[Run, Summary]) -> list[str]:
    """Return the kinds of all findings of a report, in its order."""
    return [finding.kind for finding in judge_all(*made, load_policy())[0]]


def figures(finding: Finding) -> dict[str, object]:
    """Return the evidence by its labels."""
    return {item.label: item.value for item in finding.evidence}
