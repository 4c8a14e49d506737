"""What one job of the accounting used, in the figures that the kinds of waste compare."""

from __future__ import annotations

import msgspec

from teho.explain.waste.recorded import Recordings
from teho.jobs.as_run import memory_of
from teho.jobs.js1 import Js1, decode_js1
from teho.model.accounted import AccountedJob
from teho.model.member import GpuNodes
from teho.model.missing import Missing

__all__ = ["JobUse", "use_of"]


class JobUse(msgspec.Struct, frozen=True, kw_only=True):
    """The use of one job. None: the accounting does not have it."""

    job: AccountedJob
    hours: float
    """Wall time."""
    cores: int
    cores_used: float | None
    """CPU time divided by wall time."""
    gpus: int
    gpu_means: tuple[float, ...]
    """Mean use of each GPU in %; empty if it is not known for each GPU."""
    gpu_idle_ends: tuple[float, ...] = ()
    """Share of the time for which each GPU was idle at the end, after it had been used, in %.
    Empty if it is not known for each GPU."""
    gpu_gone_ends: tuple[float, ...] = ()
    """Share of the time for which each GPU had no process of the job at the end, after it had one,
    in %. Empty if it is not known for each GPU."""
    gpu_idle_energy_j: tuple[float | None, ...] = ()
    """Energy of each GPU that was never used, and of the idle end of each other GPU. None, and
    empty: not known."""
    gpus_blocked: int = 0
    """GPUs of the job's nodes that no other job could use, because the job without GPUs had the
    cores. 0 also if this is not known."""
    gpu_memory: tuple[tuple[float, float], ...] = ()
    """Peak of the used memory, and whole memory of each GPU, in bytes. Empty if it is not known for
    each GPU."""
    memory_most_bytes: int
    """Upper bound of the memory; 0: not known."""
    memory_least_bytes: int

    @property
    def core_hours(self) -> float:
        """Cores times hours."""
        return self.cores * self.hours

    @property
    def gpu_hours(self) -> float:
        """GPUs times hours."""
        return self.gpus * self.hours

    @property
    def billing_hours(self) -> float | None:
        """Slurm's billing times hours; None: not known."""
        billing = self.job.billing
        return None if billing is None else billing * self.hours

    @property
    def gpu_busy_percent(self) -> float | None:
        """Mean use of all GPUs; None: not known."""
        means = self.gpu_means
        return sum(means) / len(means) if means else None


def use_of(
    job: AccountedJob,
    recordings: Recordings | None = None,
    gpu_nodes: GpuNodes | None = None,
) -> JobUse:
    """Return what a job used.

    Args:
        job: of the accounting.
        recordings: of Teho, which have the use of the GPUs if the accounting lacks it.
        gpu_nodes: the nodes of partitions in which every node has GPUs; None: not known.
    """
    elapsed_s = job.elapsed_s or 0.0
    memory = memory_of(job)
    least, most = memory
    means: tuple[float, ...] = ()
    gpu_memory: tuple[tuple[float, float], ...] = ()
    if job.admin_comment:
        found = decode_js1(job.admin_comment)
        if not isinstance(found, Missing):
            means = _gpu_means(found, job.gpus or 0)
            gpu_memory = _gpu_memory(found) if means else ()
            peaks = [node.memory_peak_bytes for node in found.nodes.values()]
            if None not in peaks and len(peaks) == (job.nodes or 1):
                least = most = int(sum(peak for peak in peaks if peak is not None))
    idle_ends: tuple[float, ...] = ()
    gone_ends: tuple[float, ...] = ()
    idle_energy_j: tuple[float | None, ...] = ()
    if job.gpus and recordings is not None and (uses := recordings.gpu_uses(job)):
        idle_ends = tuple(one.idle_end_percent for one in uses)
        gone_ends = tuple(one.gone_end_percent for one in uses)
        idle_energy_j = tuple(one.idle_energy_j for one in uses)
        # Of two sources, the one with the values over time: the order of the GPUs can differ.
        means, gpu_memory = tuple(one.mean_percent for one in uses), ()
    return JobUse(
        job=job,
        hours=elapsed_s / 3600,
        cores=job.cores or 0,
        cores_used=job.cpu_s / elapsed_s if job.cpu_s is not None and elapsed_s else None,
        gpus=job.gpus or 0,
        gpu_means=means,
        gpu_idle_ends=idle_ends,
        gpu_gone_ends=gone_ends,
        gpu_idle_energy_j=idle_energy_j,
        gpus_blocked=_blocked(job, gpu_nodes or {}),
        gpu_memory=gpu_memory,
        memory_most_bytes=most,
        memory_least_bytes=least,
    )


def _blocked(job: AccountedJob, gpu_nodes: GpuNodes) -> int:
    """Return the GPUs that no job could use because of a job without GPUs.

    A job with GPUs needs at least one core for each of them. If a partition has several kinds of
    nodes, the job counts as if it was on the kind on which it blocks the fewest GPUs.
    """
    kinds = gpu_nodes.get(job.partition, ())
    if job.gpus != 0 or not job.nodes or not job.cores or not kinds:
        return 0
    cores, nodes = job.cores, job.nodes
    return max(0, min(nodes * gpus - max(0, nodes * cpus - cores) for cpus, gpus in kinds))


def _gpu_means(found: Js1, gpus: int) -> tuple[float, ...]:
    """Return the mean use of each GPU; empty unless the summary has each GPU of the job."""
    means = [
        float(busy) for node in found.nodes.values() for busy in node.gpu_busy_percent.values()
    ]
    is_sound = len(means) == gpus and all(0 <= mean <= 100 for mean in means)
    return tuple(means) if is_sound else ()


def _gpu_memory(found: Js1) -> tuple[tuple[float, float], ...]:
    """Return the used and the whole memory of each GPU, in the order of `_gpu_means`."""
    memory = []
    for node in found.nodes.values():
        for gpu in node.gpu_busy_percent:
            used, whole = node.gpu_memory_peak_bytes.get(gpu), node.gpu_memory_bytes.get(gpu)
            if not used or not whole or used > whole:
                return ()
            memory.append((float(used), float(whole)))
    return tuple(memory)
