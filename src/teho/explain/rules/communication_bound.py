"""The GPUs wait together while the nodes exchange data."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import repeat

from teho.explain.rules._look import Gpu, Look, Series, per_place, span
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "communication_bound"

_MB = 1e6


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find runs whose GPUs are slow at the same times, with much traffic between them.

    A GPU waits where its busy share is low; a kernel that waits for other ranks counts as busy,
    so it also waits where its power is far below its limit. What a node exchanges with others is
    the lesser of what it receives and sends, without network file systems: gradients go both
    ways, data sets and checkpoints one. On a single node the PCIe bus takes the network's place;
    NVLink is not recorded.
    """
    look = Look(KIND, run, summary, thresholds)
    if len(look.gpus) < 2:
        return []
    waits = [wait for of in look.gpus if (wait := _waits(look, of)) is not None]
    together = _together(look, waits)
    if _percent(together) <= look.limit("time_percent"):
        return look.outcome([])
    several = len(run.nodes) > 1
    exchange = _exchange(look, several=several)
    if exchange is None:
        return look.outcome([])
    low_mb, high_mb = look.limit("exchange_min_mb_per_s"), look.limit("exchange_warning_mb_per_s")
    # The PCIe bus carries 100 MB/s for anything.
    least = (low_mb if several else high_mb) * _MB
    both = [
        None if wait is None or rate is None else wait and rate >= least
        for wait, rate in zip(together, exchange, strict=True)
    ]
    if _percent(both) <= look.limit("time_percent"):
        return look.outcome([])
    rate = _mean([rate for rate, held in zip(exchange, both, strict=True) if held]) or 0.0
    return look.outcome([_finding(look, _percent(both), rate, several=several)])


def _waits(look: Look, of: Gpu) -> list[bool | None] | None:
    """Say for each bin whether a GPU waited (bins,); None where nobody knows."""
    meter = _meter_of(of)
    busy, power = look.series(of, "gpu_busy_percent"), look.series(meter, "gpu_power_w")
    if busy is None:
        return None
    limit_w = (meter.gpu.device.power_limit_w or 0.0) * look.limit("power_below_percent") / 100
    below = look.limit("busy_below_percent")
    return [
        None if share is None else share < below or (watt is not None and watt < limit_w)
        for share, watt in zip(busy, power or repeat(None), strict=False)
    ]


def _meter_of(of: Gpu) -> Gpu:
    """Return the GPU that tells this one's power: of an MI250X's two, one tells that of both."""
    package = of.gpu.device.package_id
    for gpu in of.node.gpus if package else ():
        if gpu.device.package_id == package and gpu.device.energy_of == "package":
            return Gpu(of.node, gpu)
    return of


def _together(look: Look, waits: Sequence[Sequence[bool | None]]) -> list[bool | None]:
    share = look.limit("together_percent") / 100
    columns = [[wait for wait in column if wait is not None] for column in zip(*waits, strict=True)]
    return [sum(column) >= share * len(column) if len(column) > 1 else None for column in columns]


def _exchange(look: Look, *, several: bool) -> Series | None:
    """Return what a node, or a GPU of the only one, exchanges on average, in bytes/s (bins,)."""
    if several:
        parts = [_over_network(look, node) for node in look.summary.nodes]
    else:
        parts = [_over_pcie(look, of) for of in look.gpus]
    known = [series for series in parts if series is not None]
    if len(known) < len(parts):
        return None
    return [_mean(values) for values in zip(*known, strict=True)]


def _over_network(look: Look, node: NodeSummary) -> Series | None:
    """Return what a node exchanged with others, in bytes/s (bins,); None, and noted, if unknown."""
    received, sent = (look.series(node, f"net_{way}_bytes") for way in ("receive", "send"))
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


def _over_pcie(look: Look, of: Gpu) -> Series | None:
    into, out = (look.series(of, f"gpu_pcie_{way}_bytes_per_s") for way in ("receive", "send"))
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


def _finding(look: Look, percent: float, rate: float, *, several: bool) -> Finding:
    much = rate >= look.limit("exchange_warning_mb_per_s") * _MB
    who = "each node" if several else "each of them"
    busy = [(of, stat.mean) for of in look.gpus if (stat := look.stat(of, "gpu_busy_percent"))]
    power = [(of, stat.mean) for of in look.gpus if (stat := look.stat(of, "gpu_power_w"))]
    return look.finding(
        Severity.WARNING if much else Severity.REMARK,
        f"All {len(look.gpus)} GPUs were little used together, {span([percent], '%')} of the "
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
