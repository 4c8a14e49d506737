"""The GPUs waited at the same time while they exchanged much data with each other."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import repeat

from teho.explain.kinds import DEEP_GPU
from teho.explain.places import NodeGpu, gpus_of, per_place
from teho.explain.rule import Evidence, Findings, RuleContext, Severity, Threshold, chosen
from teho.explain.shared_thresholds import MOST_OF_THE_TIME
from teho.explain.wording import span
from teho.model.summary import NodeSummary, Series

RANK = 350
SEVERITY = "warning, remark"
THRESHOLDS = {
    "time_percent": MOST_OF_THE_TIME,
    "together_percent": chosen(
        90.0,
        "%",
        "nearly all GPUs of the run must wait at the same time, but in a run of many GPUs, one "
        "GPU may be an exception",
    ),
    "busy_below_percent": Threshold(
        50.0,
        "%",
        "as in the rule gpu_low_use: a GPU that is busy for less than half of the time waits for "
        "something",
    ),
    "power_below_percent": chosen(
        50.0,
        "%",
        "if the kernels on a GPU only wait for other GPUs, the GPU draws less than half of its "
        "power limit",
    ),
    "exchange_min_mb_per_s": chosen(
        100.0,
        "MB/s",
        "even the slowest network of a cluster (1 Gbit/s) carries up to 125 MB/s, so less traffic "
        "than this limit does not fill the network",
    ),
    "exchange_warning_mb_per_s": chosen(
        1000.0,
        "MB/s",
        "a network of 10 Gbit/s carries up to 1250 MB/s; traffic of 1000 MB/s does not occur by "
        "chance",
    ),
}
MUTES = ("gpu_pcie_bound", "gpu_launch_bound", *DEEP_GPU)
MUTES_BECAUSE = (
    "the exchange of data causes traffic over PCIe and starts small kernels: the muted rules "
    "would report only these effects"
)

_MB = 1e6


def judge(context: RuleContext) -> Findings:
    """Find runs whose GPUs wait at the same times, with much traffic between them.

    A GPU waits if its busy share is low. A kernel that waits for other ranks counts as busy: so a
    GPU also waits if its power is far below its limit. The exchange of a node is the smaller of
    what it receives and sends, without network file systems: gradients go both ways, data sets and
    checkpoints go only one way. On a single node, the PCIe bus counts instead of the network;
    NVLink is not recorded.
    """
    if len(context.gpus) < 2:
        return
    waits = [wait for gpu in context.gpus if (wait := _waits(context, gpu)) is not None]
    together = _together(context, waits)
    if _percent(together) <= context.limit("time_percent"):
        return
    several = len(context.run.nodes) > 1
    exchange = _exchange(context, several=several)
    if exchange is None:
        return
    low_mb = context.limit("exchange_min_mb_per_s")
    high_mb = context.limit("exchange_warning_mb_per_s")
    # Any program moves 100 MB/s over the PCIe bus.
    least = (low_mb if several else high_mb) * _MB
    pairs = [pair for pair in zip(together, exchange, strict=True) if None not in pair]
    both = [rate for wait, rate in pairs if wait and rate is not None and rate >= least]
    percent = 100 * (len(both) / len(pairs)) if pairs else 0.0
    if percent <= context.limit("time_percent"):
        return
    rate = statistics.fmean(both)
    bins = [wait and flow is not None and flow >= least
            for wait, flow in zip(together, exchange, strict=True)]  # fmt: skip
    who, others = ("each node", "nodes") if several else ("each GPU", "GPUs")
    means = context.means("gpu_busy_percent")
    below = context.limit("busy_below_percent")
    is_busy = bool(means) and all(mean >= below for _, mean in means)
    work = "were busy, but used little power" if is_busy else "had little work"
    yield context.finding(
        Severity.WARNING if rate >= high_mb * _MB else Severity.REMARK,
        f"For {span([percent], '%')} of the time, all {len(context.gpus)} GPUs {work}. "
        f"During this time, {who} exchanged {span([rate], 'bytes/s')} with the other {others}.",
        evidence=(
            Evidence(
                "time in which the GPUs had little work and exchanged much data", percent, "%"
            ),
            Evidence(
                f"data that {who} exchanged in each direction during this time", rate, "bytes/s"
            ),
            *per_place("GPU busy, mean", "%", means),
            *per_place("GPU power, mean", "W", context.means("gpu_power_w")),
        ),
        action=_action(several=several),
        moments=context.moments_in("gpu_busy_percent", [(gpu, bins) for gpu in context.gpus]),
    )


def _waits(context: RuleContext, gpu: NodeGpu) -> list[bool | None] | None:
    """Return for each bin whether a GPU waited (bins,); None if it is not known."""
    meter = _power_meter(gpu)
    busy, power = context.series(gpu, "gpu_busy_percent"), context.series(meter, "gpu_power_w")
    if busy is None:
        return None
    limit_w = (meter.gpu.device.power_limit_w or 0.0) * context.limit("power_below_percent") / 100
    below = context.limit("busy_below_percent")
    return [
        None if share is None else share < below or (watt is not None and watt < limit_w)
        for share, watt in zip(busy, power or repeat(None), strict=False)
    ]


def _power_meter(gpu: NodeGpu) -> NodeGpu:
    """Return the GPU that reports this one's power: one of an MI250X's two GPUs reports both."""
    package = gpu.gpu.device.package_id
    for other in gpus_of(gpu.node) if package else ():
        device = other.gpu.device
        if device.package_id == package and device.energy_of == "package":
            return other
    return gpu


def _together(context: RuleContext, waits: Sequence[Sequence[bool | None]]) -> list[bool | None]:
    share = context.limit("together_percent") / 100
    columns = [[wait for wait in column if wait is not None] for column in zip(*waits, strict=True)]
    return [sum(column) >= share * len(column) if len(column) > 1 else None for column in columns]


def _exchange(context: RuleContext, *, several: bool) -> Series | None:
    """Return the mean exchange of the nodes, or of a single node's GPUs, in bytes/s (bins,)."""
    if several:
        parts = [_over_network(context, node) for node in context.summary.nodes]
    else:
        parts = [_over_pcie(context, gpu) for gpu in context.gpus]
    known = [series for series in parts if series is not None]
    if len(known) < len(parts):
        return None
    return [_mean(values) for values in zip(*known, strict=True)]


def _over_network(context: RuleContext, node: NodeSummary) -> Series | None:
    """Return a node's exchange with others, in bytes/s (bins,); None, and noted, if unknown."""
    received, sent = (context.series(node, f"net_{way}_bytes") for way in ("receive", "send"))
    if received is None or sent is None:
        return None
    nothing: Series = [0.0] * len(received)
    # Without these figures: files still go in one direction at a time.
    read = node.series.get("netfs_read_bytes", nothing)
    written = node.series.get("netfs_write_bytes", nothing)
    return [_exchanged(*rates) for rates in zip(received, sent, read, written, strict=True)]


def _exchanged(
    received: float | None, sent: float | None, read: float | None, written: float | None
) -> float | None:
    if received is None or sent is None:
        return None
    rate = max(0.0, min(received - (read or 0.0), sent - (written or 0.0)))
    # If more is read from files, the GPUs wait for data rather than for each other.
    return rate if rate > (read or 0.0) else 0.0


def _over_pcie(context: RuleContext, gpu: NodeGpu) -> Series | None:
    into, out = (context.series(gpu, f"gpu_pcie_{way}_bytes_per_s") for way in ("receive", "send"))
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
    return 100 * (_mean(verdicts) or 0.0)


def _action(*, several: bool) -> str:
    way = (
        "set `NCCL_DEBUG=INFO`. The log should then name `NET/IB` or `NET/OFI`, not the slow "
        "`NET/Socket`"
        if several
        else "`nvidia-smi topo -m` shows which GPUs have a direct link"
    )
    return (
        f"Check which path the data take between the GPUs: {way}. Exchange data less often: use "
        "a larger batch on each GPU, or several batches for one step (`with model.no_sync():`). "
        "Or exchange fewer bytes, with DDP's `bf16_compress_hook`. To find out how much time the "
        "exchange takes, also measure a step on one node or one GPU, and compare the times."
    )
