"""Joins the samples of a job in a store with what the accounting knows."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from itertools import count, pairwise
from pathlib import Path
from statistics import median

import msgspec

from teho.jobs.as_run import JobRun, SourceOf
from teho.jobs.http import Store
from teho.jobs.log import Sample, Source
from teho.jobs.make_recording import ImportWish, make_recordings
from teho.jobs.monitoring import Monitored
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.run import Absence, Node, Run
from teho.model.summary import Figure, NodeSummary, Summary
from teho.store.read import read_run
from teho.units import format_duration

__all__ = ["joined", "record"]

_SKEW_PERIODS = 2
"""Number of sampling periods. A smaller difference of the clocks changes no figure."""


def record(
    monitored: Monitored, found: JobRun, store: Store, home: Path
) -> tuple[JobRun, Path] | None:
    """Write the samples of a job as a recording; return the job with their nodes and GPUs.

    Args:
        monitored: what the store knows.
        found: the job in the accounting.
        store: the store.
        home: an empty directory for the recording.

    Returns:
        The job, without new figures, and the directory of the recording. None: the store has no
        samples of the time of the job.
    """
    log, notes = monitored.log, list(monitored.notes)
    period_s = _period_s(log.samples)
    start_s = found.run.started_at.timestamp()
    ahead_s = _ahead_s(log.samples, found, period_s)
    if ahead_s:
        difference = format_duration(abs(ahead_s))
        notes.append(
            f"The clocks of the nodes and of the scheduler differ by {difference}: Teho moved the "
            "start and the end of the job to the samples."
        )
        start_s += ahead_s
    end_s = math.inf if found.run.end is None else start_s + found.run.end.elapsed_s + period_s
    log.samples = [one for one in log.samples if start_s - period_s <= (one.at_s or 0.0) <= end_s]
    if not log.samples:
        return None
    covered = _covered_percent(log.samples, found, period_s)
    source = Source(Path(store.host), "", start_s)
    (directory,) = make_recordings([(source, log)], ImportWish(began_s=start_s), home)
    recorded = read_run(directory)
    own = SourceOf(
        "figures over time",
        f"{store.host}: {', '.join(monitored.exporters)}; one sample every "
        f"{format_duration(recorded.period_s)}",
    )
    end = found.run.end and msgspec.structs.replace(found.run.end, cpu_s=found.job.cpu_s)
    run = msgspec.structs.replace(
        found.run,
        started_at=recorded.started_at,
        period_s=recorded.period_s,
        nodes=tuple(_nodes(found.run, recorded, store)),
        end=end,
    )
    with_samples = msgspec.structs.replace(
        found,
        run=run,
        store=store.host,
        covered_percent=covered,
        notes=tuple(notes),
        sources=(*found.sources, own),
    )
    return with_samples, directory


def _period_s(samples: Sequence[Sample]) -> float:
    """Return the usual time between two samples of one node or GPU, at least 1 s."""
    of_places: dict[tuple[str, str], list[float]] = {}
    for sample in samples:
        of_places.setdefault((sample.node, sample.device), []).append(sample.at_s or 0.0)
    times_s = max(of_places.values(), key=len, default=[])
    return max(median([later - earlier for earlier, later in pairwise(times_s)] or [1.0]), 1.0)


def _ahead_s(samples: Sequence[Sample], found: JobRun, period_s: float) -> float:
    """Return how much the clocks of the nodes are ahead of the scheduler's; 0: nearly equal.

    Samples name the job, so samples before its start or after its end show that the clocks differ.
    """
    if not samples:
        return 0.0
    times_s = [sample.at_s or 0.0 for sample in samples]
    early_s = min(times_s) - found.run.started_at.timestamp()
    if early_s < -_SKEW_PERIODS * period_s:
        return early_s
    if found.run.end is None:
        return 0.0
    late_s = max(times_s) - found.run.end.at.timestamp()
    return min(late_s, early_s) if late_s > _SKEW_PERIODS * period_s else 0.0


def _covered_percent(samples: Sequence[Sample], found: JobRun, period_s: float) -> float:
    """Return for how much of the time of all nodes the store has samples."""
    of_nodes: dict[str, set[float]] = {}
    for sample in samples:
        of_nodes.setdefault(sample.node, set()).add(sample.at_s or 0.0)
    end = found.run.end
    whole_s = end.elapsed_s if end else time.time() - found.run.started_at.timestamp()
    covered_s = sum(
        period_s + sum(min(b - a, 2 * period_s) for a, b in pairwise(sorted(times_s)))
        for times_s in of_nodes.values()
    )
    nodes = max(len(found.run.nodes), len(of_nodes))
    return min(100.0, 100 * covered_s / max(nodes * whole_s, 1e-9))


def _nodes(accounted: Run, recorded: Run, store: Store) -> Iterator[Node]:
    """Yield the nodes of the accounting, with the devices and the reasons of the recording."""
    own = {node.name.partition(".")[0]: node for node in recorded.nodes}
    for node in accounted.nodes:
        found = own.get(node.name.partition(".")[0])
        if found is None:
            yield node
            continue
        allocated = node.allocation.gpus_held or 0
        extra = list(_unseen(found, allocated - len(found.devices)))
        why = Missing(Reason.UNRECORDED, f"the store {store.host} has no samples of this GPU")
        yield msgspec.structs.replace(
            found,
            started_at=recorded.started_at,
            allocation=node.allocation,
            devices=(*found.devices, *extra),
            absences=(
                *found.absences,
                *(
                    Absence(device=one.id, metric=metric, missing=why, since_s=0.0)
                    for one in extra
                    for metric in ("gpu_busy_percent", "gpu_memory_used_bytes")
                ),
            ),
            notes=(),
        )
    if not accounted.nodes:
        yield from (msgspec.structs.replace(node, notes=()) for node in recorded.nodes)


def _unseen(node: Node, number: int) -> Iterator[Device]:
    """Yield a device for each allocated GPU without samples, so that none is left out."""
    indices = {device.index for device in node.devices}
    free = (index for index in count() if index not in indices)
    model = node.devices[0] if node.devices else None
    for _, index in zip(range(number), free, strict=False):
        yield Device(
            id=f"unseen-gpu-{index}",
            index=index,
            name=model.name if model else "GPU",
            vendor=model.vendor if model else "nvidia",
        )


def joined(found: JobRun, summary: Summary) -> Summary:
    """Return the figures of the samples; those that the samples lack are from the accounting."""
    known = {node.name.partition(".")[0]: node for node in found.summary.nodes}
    nodes = tuple(_joined(node, known.get(node.name.partition(".")[0])) for node in summary.nodes)
    cpu_s = found.summary.cpu_s if isinstance(summary.cpu_s, Missing) else summary.cpu_s
    return msgspec.structs.replace(summary, nodes=nodes, cpu_s=cpu_s)


def _joined(node: NodeSummary, known: NodeSummary | None) -> NodeSummary:
    if known is None:
        return node
    return msgspec.structs.replace(
        node,
        cores=node.cores or known.cores,
        cpu_cores_used=_known(node.cpu_cores_used, known.cpu_cores_used),
        memory_peak_bytes=_known(node.memory_peak_bytes, known.memory_peak_bytes),
        gpus=node.gpus if _has_samples(node) else known.gpus,
    )


def _known(first: Figure, second: Figure) -> Figure:
    return second if isinstance(first, Missing) else first


def _has_samples(node: NodeSummary) -> bool:
    figures: Sequence[object] = [stat for gpu in node.gpus for stat in gpu.stats.values()]
    return any(not isinstance(one, Missing) for one in figures)
