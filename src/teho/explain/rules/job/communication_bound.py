"""The GPUs wait together while the nodes exchange data."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import repeat

from teho.explain.context import NodeGpu, RuleContext, Series, per_place, span
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.summary import NodeSummary

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "communication_bound"
RANK = 350
SAYS = "the GPUs waited together while they exchanged much data with each other"
SEVERITY = "warning, remark"
THRESHOLDS = {
    "time_percent": Threshold(
        50.0, "%", "as SageMaker's profiler rules: more than 50 % of the time"
    ),
    "together_percent": Threshold(
        90.0, "%", "Teho's own choice: together means nearly all, whatever one of many GPUs does"
    ),
    "busy_below_percent": Threshold(
        50.0, "%", "as gpu_low_use: a GPU under 50 % waits for something"
    ),
    "power_below_percent": Threshold(
        50.0,
        "%",
        "Teho's own choice, of the GPU's power limit: a kernel that waits for others draws little",
    ),
    "exchange_min_mb_per_s": Threshold(
        100.0,
        "MB/s",
        "Teho's own choice: 1 Gbit/s, the slowest network of a cluster, carries 125 MB/s",
    ),
    "exchange_warning_mb_per_s": Threshold(
        1000.0,
        "MB/s",
        "Teho's own choice: 10 Gbit/s carry 1250 MB/s; so much is exchanged for a reason",
    ),
}
MUTES = Mutes(
    ("gpu_pcie_bound", "gpu_launch_bound", "gpu_sm_low", "gpu_low_occupancy"),
    because="kernels that wait for other GPUs are small, and the traffic is theirs",
)

_MB = 1e6


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find runs whose GPUs are slow at the same times, with much traffic between them.

    A GPU waits where its busy share is low; a kernel that waits for other ranks counts as busy,
    so it also waits where its power is far below its limit. What a node exchanges with others is
    the lesser of what it receives and sends, without network file systems: gradients go both
    ways, data sets and checkpoints one. On a single node the PCIe bus takes the network's place;
    NVLink is not recorded.
    """
    if len(context.gpus) < 2:
        return []
    waits = [wait for of in context.gpus if (wait := _waits(context, of)) is not None]
    together = _together(context, waits)
    if _percent(together) <= context.limit("time_percent"):
        return context.outcome([])
    several = len(context.run.nodes) > 1
    exchange = _exchange(context, several=several)
    if exchange is None:
        return context.outcome([])
    low_mb, high_mb = (
        context.limit("exchange_min_mb_per_s"),
        context.limit("exchange_warning_mb_per_s"),
    )
    # The PCIe bus carries 100 MB/s for anything.
    least = (low_mb if several else high_mb) * _MB
    both = [
        None if wait is None or rate is None else wait and rate >= least
        for wait, rate in zip(together, exchange, strict=True)
    ]
    if _percent(both) <= context.limit("time_percent"):
        return context.outcome([])
    rate = _mean([rate for rate, held in zip(exchange, both, strict=True) if held]) or 0.0
    return context.outcome([_finding(context, _percent(both), rate, several=several)])


def _waits(context: RuleContext, of: NodeGpu) -> list[bool | None] | None:
    """Say for each bin whether a GPU waited (bins,); None if nobody knows."""
    meter = _meter_of(of)
    busy, power = context.series(of, "gpu_busy_percent"), context.series(meter, "gpu_power_w")
    if busy is None:
        return None
    limit_w = (meter.gpu.device.power_limit_w or 0.0) * context.limit("power_below_percent") / 100
    below = context.limit("busy_below_percent")
    return [
        None if share is None else share < below or (watt is not None and watt < limit_w)
        for share, watt in zip(busy, power or repeat(None), strict=False)
    ]


def _meter_of(of: NodeGpu) -> NodeGpu:
    """Return the GPU that tells this one's power: of an MI250X's two, one tells that of both."""
    package = of.gpu.device.package_id
    for gpu in of.node.gpus if package else ():
        if gpu.device.package_id == package and gpu.device.energy_of == "package":
            return NodeGpu(of.node, gpu)
    return of


def _together(context: RuleContext, waits: Sequence[Sequence[bool | None]]) -> list[bool | None]:
    share = context.limit("together_percent") / 100
    columns = [[wait for wait in column if wait is not None] for column in zip(*waits, strict=True)]
    return [sum(column) >= share * len(column) if len(column) > 1 else None for column in columns]


def _exchange(context: RuleContext, *, several: bool) -> Series | None:
    """Return what a node, or a GPU of the only one, exchanges on average, in bytes/s (bins,)."""
    if several:
        parts = [_over_network(context, node) for node in context.summary.nodes]
    else:
        parts = [_over_pcie(context, of) for of in context.gpus]
    known = [series for series in parts if series is not None]
    if len(known) < len(parts):
        return None
    return [_mean(values) for values in zip(*known, strict=True)]


def _over_network(context: RuleContext, node: NodeSummary) -> Series | None:
    """Return what a node exchanged with others, in bytes/s (bins,); None, and noted, if unknown."""
    received, sent = (context.series(node, f"net_{way}_bytes") for way in ("receive", "send"))
    if received is None or sent is None:
        return None
    nothing: Series = [0.0] * len(received)
    # Where they are not known, files still go one way at a time.
    read = node.series.get("netfs_read_bytes", nothing)
    written = node.series.get("netfs_write_bytes", nothing)
    return [_exchanged(*rates) for rates in zip(received, sent, read, written, strict=True)]


def _exchanged(
    received: float | None, sent: float | None, read: float | None, written: float | None
) -> float | None:
    if received is None or sent is None:
        return None
    rate = max(0.0, min(received - (read or 0.0), sent - (written or 0.0)))
    # Where more is read from files, the GPUs wait for data rather than for each other.
    return rate if rate > (read or 0.0) else 0.0


def _over_pcie(context: RuleContext, of: NodeGpu) -> Series | None:
    into, out = (context.series(of, f"gpu_pcie_{way}_bytes_per_s") for way in ("receive", "send"))
    if into is None or out is None:
        return None
    return [
        None if one is None or other is None else min(one, other)
        for one, other in zip(into, out, strict=True)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _percent(verdicts: Sequence[bool | None]) -> float:
    known = [verdict for verdict in verdicts if verdict is not None]
    return 100 * sum(known) / len(known) if known else 0.0


def _finding(context: RuleContext, percent: float, rate: float, *, several: bool) -> Finding:
    much = rate >= context.limit("exchange_warning_mb_per_s") * _MB
    who = "each node" if several else "each of them"
    busy = [
        (of, stat.mean) for of in context.gpus if (stat := context.stat(of, "gpu_busy_percent"))
    ]
    power = [(of, stat.mean) for of in context.gpus if (stat := context.stat(of, "gpu_power_w"))]
    return context.finding(
        Severity.WARNING if much else Severity.REMARK,
        f"All {len(context.gpus)} GPUs were little used together, {span([percent], '%')} of the "
        f"time, while {who} exchanged {span([rate], 'bytes/s')} with the others.",
        evidence=(
            Evidence("time with little use and much traffic", percent, "%"),
            Evidence(f"exchanged meanwhile, {who}, each way", rate, "bytes/s"),
            *per_place("GPU busy, mean", "%", busy),
            *per_place("GPU power, mean", "W", power),
        ),
        judged_by=[
            "time_percent",
            "together_percent",
            "busy_below_percent",
            "power_below_percent",
            "exchange_min_mb_per_s",
            "exchange_warning_mb_per_s",
        ],
        action=_action(several=several),
    )


def _action(*, several: bool) -> str:
    way = (
        "`NCCL_DEBUG=INFO` should name `NET/IB` or `NET/OFI`, not `NET/Socket`"
        if several
        else "`nvidia-smi topo -m` shows which GPUs are linked directly"
    )
    return (
        f"See which way the data goes: {way}. Exchange less often, with a larger batch on each GPU "
        "or several batches for one step, `with model.no_sync():`, or exchange less, with DDP's "
        "`bf16_compress_hook`. Time a step on one node, or one GPU, to know what the others add."
    )
