"""Named runs for the tests of rules, text and HTML: what a recording boils down to.

Every scenario is a function without arguments that returns `(Run, Summary)`. Means,
maxima and series agree with each other: all come from one list of bins.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Union

from teho.model.allocation import Allocation
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.run import FORMAT_VERSION, End, Node, Run
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
    ) -> None:
        self.name, self.cores, self.gpus = name, cores, gpus
        self.cores_used, self.memory_peak = cores_used, memory_peak
        self.memory_limit, self.memory_source, self.oom_kills = (
            memory_limit,
            memory_source,
            oom_kills,
        )
        self.gpu_memory_bytes, self.vendor = gpu_memory_bytes, vendor
        self.signals: dict[str, Given] = {
            "cpu_busy_percent": 75.0,
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
            )
            if scheduler
            else Allocation(cores=tuple(range(cores)))
        )

    def devices(self) -> tuple[Device, ...]:
        name = "Tesla V100-SXM2-32GB" if self.vendor == "nvidia" else "AMD Instinct MI250X"
        return tuple(
            Device(
                id=f"GPU-{self.name}-{position}",
                index=position,
                name=name,
                vendor=self.vendor,
                memory_bytes=self.gpu_memory_bytes,
            )
            for position in range(len(self.gpus))
        )

    def node(self, period_s: float) -> Node:
        return Node(
            name=self.name,
            started_at=STARTED,
            period_s=period_s,
            cores=tuple(range(self.cores)),
            core_count_node=self.cores,
            memory_node_bytes=384 * GIB,
            cpu_model="Intel Xeon Gold 6230",
            allocation=self.allocation,
            devices=self.devices(),
            sealed=True,
        )

    def summary(self, elapsed_s: float) -> NodeSummary:
        used = stat_of(self.cores_used, elapsed_s)
        return NodeSummary(
            name=self.name,
            covered_s=elapsed_s,
            cores=self.cores,
            stats={metric: stat_of(given, elapsed_s) for metric, given in self.signals.items()},
            totals={
                "job_cpu_s": used.mean * elapsed_s if isinstance(used, Stat) else used,
                "oom_kills": self.oom_kills,
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
            series=series_of({**self.signals, "job_cpu_s": self.cores_used}),
        )


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
        "gpu_memory_used_bytes": 17.0 * GIB,
        "gpu_power_w": 230.0,
        "gpu_temperature_c": 62.0,
        "gpu_thermal_throttle_percent": 0.0,
        "gpu_power_throttle_percent": 3.0,
        "gpu_job_processes": 1.0,
        "gpu_job_memory_bytes": 16.5 * GIB,
        **signals,
    }


def untouched_gpu() -> dict[str, Given]:
    """Return the signals of a GPU that nothing ran on."""
    return gpu(
        0.0,
        gpu_memory_used_bytes=0.5 * GIB,
        gpu_power_w=40.0,
        gpu_temperature_c=30.0,
        gpu_power_throttle_percent=0.0,
        gpu_job_processes=0.0,
        gpu_job_memory_bytes=0.0,
    )


def gpu_summary(
    device: Device, position: int, signals: Mapping[str, Given], elapsed_s: float
) -> GpuSummary:
    power = stat_of(signals["gpu_power_w"], elapsed_s)
    return GpuSummary(
        device=device,
        position=position,
        stats={metric: stat_of(given, elapsed_s) for metric, given in signals.items()},
        energy_j=power.mean * elapsed_s if isinstance(power, Stat) else power,
        energy_source="counter" if isinstance(power, Stat) else "",
        series=series_of(signals),
    )


def scenario(
    *parts: NodePart,
    elapsed_s: float = 3600.0,
    period_s: float = 1.0,
    command: Sequence[str] = ("python", "train.py"),
    environment: Mapping[str, str] | None = None,
    peak_process_bytes: int = 0,
) -> tuple[Run, Summary]:
    """Make a finished run of these nodes."""
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
        end=End(
            at=STARTED + timedelta(seconds=elapsed_s),
            elapsed_s=elapsed_s,
            exit_code=0,
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


def well_used_8_gpus() -> tuple[Run, Summary]:
    """Eight GPUs on two nodes, all at work: nothing to find."""
    # A short wait for the first batch, checkpoints now and then.
    busy = repeated((20.0, 2), *[(95.0, 13), (60.0, 1)] * 4, (95.0, 2))
    names = ("r01g01", "r01g02")
    return scenario(*(NodePart(name, gpus=[gpu(busy) for _ in range(4)]) for name in names))


def one_idle_gpu() -> tuple[Run, Summary]:
    """Four GPUs; the program holds memory on all of them and computes on three."""
    return scenario(NodePart(gpus=[gpu(), gpu(0.0), gpu(88.0), gpu(90.0)]))


def never_used_gpu() -> tuple[Run, Summary]:
    """Two GPUs asked for, one used: `GPU 1 on r01g01 was never used.`."""
    return scenario(NodePart(gpus=[gpu(), untouched_gpu()]))


def never_used_16_gpus() -> tuple[Run, Summary]:
    """Four nodes of four GPUs, and the program runs on CPU cores."""
    names = [f"r01g{number:02d}" for number in range(1, 5)]
    return scenario(*(NodePart(name, gpus=[untouched_gpu()] * 4) for name in names))


def used_at_first() -> tuple[Run, Summary]:
    """One GPU, busy for 36 of 60 minutes and held to the end."""
    return scenario(NodePart(gpus=[gpu(repeated((94.0, 36), (0.0, 24)))]))


def low_use() -> tuple[Run, Summary]:
    """Four GPUs in steps and stops, 20 % busy each."""
    return scenario(NodePart(gpus=[gpu(20.0) for _ in range(4)]))


def starved_by_io() -> tuple[Run, Summary]:
    """One GPU waits for a single thread that reads small files, on ten cores."""
    signals: dict[str, Given] = {
        "cpu_busy_percent": 5.0,
        "cpu_iowait_percent": 9.0,
        "job_runnable_threads": 0.3,
    }
    return scenario(NodePart(cores=10, cores_used=0.4, signals=signals, gpus=[gpu(6.0)]))


def starved_by_cpu() -> tuple[Run, Summary]:
    """One GPU waits for the main thread, which does everything itself, on ten cores."""
    signals: dict[str, Given] = {"cpu_busy_percent": 11.0, "job_runnable_threads": 1.0}
    return scenario(NodePart(cores=10, cores_used=1.0, signals=signals, gpus=[gpu(7.0)]))


def starved_by_all_cores() -> tuple[Run, Summary]:
    """One GPU waits for four cores, all of them busy preparing data."""
    signals: dict[str, Given] = {"cpu_busy_percent": 98.0, "job_runnable_threads": 4.0}
    return scenario(NodePart(cores=4, cores_used=3.9, signals=signals, gpus=[gpu(8.0)]))


def serial_on_40_cores() -> tuple[Run, Summary]:
    """A CPU job of 40 cores and one thread."""
    signals: dict[str, Given] = {"cpu_busy_percent": 2.6, "job_runnable_threads": 1.0}
    return scenario(NodePart("r01c01", cores_used=0.97, signals=signals))


def oversubscribed() -> tuple[Run, Summary]:
    """Eight processes, each with a thread for every one of eight cores."""
    signals: dict[str, Given] = {
        "cpu_busy_percent": 100.0,
        "job_runnable_threads": 64.0,
        "job_processes": 8.0,
    }
    return scenario(NodePart("r01c01", cores=8, cores_used=7.9, signals=signals))


def memory_near_limit() -> tuple[Run, Summary]:
    """A CPU job at 95 % of its memory."""
    return scenario(NodePart("r01c01", memory_peak=60.8 * GIB, memory_limit=64.0 * GIB))


def memory_overasked() -> tuple[Run, Summary]:
    """A CPU job that used 12 of 64 GiB."""
    return scenario(NodePart("r01c01", memory_peak=12.0 * GIB, memory_limit=64.0 * GIB))


def out_of_memory() -> tuple[Run, Summary]:
    """A CPU job in which the kernel killed two processes."""
    return scenario(
        NodePart("r01c01", memory_peak=64.0 * GIB, memory_limit=64.0 * GIB, oom_kills=2.0)
    )


def hot_gpu() -> tuple[Run, Summary]:
    """One GPU with a broken fan, one at its power limit."""
    hot = gpu(gpu_thermal_throttle_percent=31.0, gpu_temperature_c=91.0)
    return scenario(NodePart(gpus=[hot, gpu(gpu_power_throttle_percent=80.0)]))


def hidden_gpu() -> tuple[Run, Summary]:
    """The job holds four GPUs, CUDA_VISIBLE_DEVICES shows one."""
    held = Allocation(scheduler="slurm", job_id="4711", cores_asked=40, gpus_held=4)
    return scenario(
        NodePart(gpus=[gpu()], allocation=held), environment={"CUDA_VISIBLE_DEVICES": "0"}
    )


def short_job() -> tuple[Run, Summary]:
    """Twenty seconds, most of them spent importing."""
    busy = repeated((0.0, 45), (80.0, 15))
    return scenario(NodePart(gpus=[gpu(busy)], cores_used=1.0), elapsed_s=20.0)


def no_gpu_clean() -> tuple[Run, Summary]:
    """A CPU job that uses what it asked for: nothing to find."""
    return scenario(
        NodePart("r01c01", cores_used=38.5, memory_peak=150.0 * GIB, memory_limit=186.0 * GIB)
    )


def laptop() -> tuple[Run, Summary]:
    """One's own machine, no scheduler, no GPU, half of its cores at work."""
    part = NodePart(
        "laptop",
        cores=8,
        cores_used=4.0,
        signals={"job_runnable_threads": 4.0},
        memory_peak=3.0 * GIB,
        memory_limit=32.0 * GIB,
        memory_source="node",
        scheduler=None,
    )
    return scenario(part)


def missing_signals() -> tuple[Run, Summary]:
    """One MIG instance without a busy share; the kernel told next to nothing."""
    signals: dict[str, Given] = dict.fromkeys(gpu(), UNSUPPORTED)
    absent = Missing(Reason.ABSENT, "no cgroup of the job's own")
    part = NodePart(
        gpus=[signals],
        cores_used=FORBIDDEN,
        signals=dict.fromkeys(("cpu_iowait_percent", "job_runnable_threads"), FORBIDDEN),
        memory_peak=FORBIDDEN,
        memory_limit=absent,
        oom_kills=absent,
        allocation=Allocation(scheduler="slurm", job_id="4711"),
        gpu_memory_bytes=None,
    )
    return scenario(part)


def lost_gpu() -> tuple[Run, Summary]:
    """Two GPUs, both at work; one falls off the bus after a third of the run."""
    seen = repeated((93.0, 20), (None, 40))
    return scenario(NodePart(gpus=[gpu(), dict.fromkeys(gpu(), seen)]))


def nothing_recorded() -> tuple[Run, Summary]:
    """The recorder never took a sample."""
    return scenario(elapsed_s=0.4)


SCENARIOS: dict[str, Callable[[], tuple[Run, Summary]]] = {
    function.__name__: function
    for function in (
        well_used_8_gpus,
        one_idle_gpu,
        never_used_gpu,
        never_used_16_gpus,
        used_at_first,
        low_use,
        starved_by_io,
        starved_by_cpu,
        starved_by_all_cores,
        serial_on_40_cores,
        oversubscribed,
        memory_near_limit,
        memory_overasked,
        out_of_memory,
        hot_gpu,
        hidden_gpu,
        short_job,
        no_gpu_clean,
        laptop,
        missing_signals,
        lost_gpu,
        nothing_recorded,
    )
}
