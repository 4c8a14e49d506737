"""Memory and occupancy of a program's processes on AMD GPUs, from KFD's process list."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import NamedTuple

from teho.devices.amd.files import why_missing
from teho.devices.procfile import has_host_pids, number_in
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["METRICS", "NO_KFD", "GpuOfJob", "Processes", "of_job"]

METRICS = ("gpu_job_processes", "gpu_job_memory_bytes", "gpu_sm_occupancy_percent")
"""The metrics of each GPU."""

NO_KFD = Missing(Reason.ABSENT, "KFD, which lists the processes on a GPU, is not on this node")
_COUNTS_NO_MEMORY = Missing(
    Reason.ABSENT, "this kernel's KFD does not count the memory of a process"
)
_COUNTS_NO_WAVES = Missing(
    Reason.ABSENT, "this kernel's KFD does not count the compute units that a process occupies"
)
_NO_UNITS = Missing(Reason.ABSENT, "KFD does not report the number of compute units of the GPU")
_OTHER_PID_NAMESPACE = Missing(
    Reason.UNSUPPORTED, "KFD reports the host's process ids, but this container uses other ids"
)

_HAS_ENDED = (errno.ENOENT, errno.ENODEV, errno.ESRCH)


class GpuOfJob(NamedTuple):
    """The facts of a GPU that are needed to find the processes on it."""

    id: str
    kfd_ids: tuple[str, ...]
    """Ids in KFD's list: one, or one for each of the job's partitions."""
    compute_units: int
    """Number of all compute units; 0 if not known."""
    counts_memory: bool
    """Whether memory shows which processes use the GPU. The memory of an APU does not."""


class _Tally:
    """Sums over the job's processes on one GPU."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.occupied: Reading = 0


class Processes:
    """The job's processes on its GPUs.

    Args:
        top: the folder that contains `sys` and `proc`, without a slash at its end.
    """

    def __init__(self, top: str) -> None:
        self._directory = f"{top}/sys/class/kfd/kfd/proc"
        # KFD has the host's process numbers.
        self._foreign = has_host_pids(top) is False
        self.memory: dict[str, dict[int, int]] = {}
        """Memory of the program's processes on each GPU at the last reading, by process id."""

    def read(self, pids: frozenset[int], gpus: Iterable[GpuOfJob]) -> dict[str, dict[str, Reading]]:
        """Return number, memory and occupancy of those `pids` that use a GPU, by device id."""
        alive = self._alive(pids)
        self.memory = {}
        if isinstance(alive, Missing):
            return {gpu.id: of_job(alive, alive, alive) for gpu in gpus}
        tallies = {gpu.id: self._tally(gpu, alive) for gpu in gpus}
        # Without a file, no process uses the GPU. If no GPU has a file while the processes live,
        # this kernel does not have these files.
        unlisted = of_job(0, 0, 0)
        if alive and not any(tallies.values()) and self._alive(alive):
            unlisted = of_job(_COUNTS_NO_MEMORY, _COUNTS_NO_MEMORY, _COUNTS_NO_MEMORY)
        return {gpu_id: tally or unlisted for gpu_id, tally in tallies.items()}

    def _alive(self, pids: frozenset[int]) -> Missing | frozenset[int]:
        """Return the `pids` that have opened KFD. Most helper processes have not."""
        if self._foreign:
            return _OTHER_PID_NAMESPACE
        try:
            names = os.listdir(self._directory)  # noqa: PTH208 (no Path objects while sampling)
        except OSError as error:
            return why_missing(error, "kfd/proc")
        return pids.intersection(int(name) for name in names if name.isdecimal())

    def _tally(self, gpu: GpuOfJob, pids: frozenset[int]) -> dict[str, Reading]:
        """Return the readings of one GPU; empty if no process has a file for it.

        The files do not stay open: many ranks on many GPUs would use up the recorder's file
        descriptors.
        """
        tally = _Tally()
        for pid in pids:
            for kfd_id in gpu.kfd_ids:
                try:
                    size_bytes = number_in(f"{self._directory}/{pid}/vram_{kfd_id}")
                except (OSError, ValueError) as error:
                    if isinstance(error, OSError) and error.errno in _HAS_ENDED:
                        continue
                    missing = why_missing(error, "vram of a process")
                    return of_job(missing, missing, missing)
                tally.sizes[pid] = tally.sizes.get(pid, 0) + size_bytes
                if size_bytes or not gpu.counts_memory:
                    self._add_occupied(tally, f"{self._directory}/{pid}/stats_{kfd_id}")
        if not tally.sizes:
            return {}
        # KFD has a file for each GPU that a process may use. The memory shows whether it does.
        self.memory[gpu.id] = {pid: size for pid, size in tally.sizes.items() if size > 0}
        return of_job(
            sum(size > 0 for size in tally.sizes.values()),
            sum(tally.sizes.values()),
            _share(tally.occupied, gpu.compute_units),
        )

    def _add_occupied(self, tally: _Tally, folder: str) -> None:
        if isinstance(tally.occupied, (Missing, list)):
            return
        try:
            tally.occupied += number_in(f"{folder}/cu_occupancy")
        except OSError as error:
            if error.errno == errno.ENOENT:
                tally.occupied = _COUNTS_NO_WAVES
            elif error.errno == errno.EINVAL:  # this GPU cannot count (kfd_process.c)
                tally.occupied = Missing(
                    Reason.UNSUPPORTED, "this GPU does not report cu_occupancy"
                )
            elif error.errno not in _HAS_ENDED:
                tally.occupied = why_missing(error, "cu_occupancy")
        except ValueError as error:
            tally.occupied = why_missing(error, "cu_occupancy")


def _share(occupied: Reading, compute_units: int) -> Reading:
    """Return the resident wavefronts in percent of those that fit on the GPU.

    KFD divides the present wavefronts of a process by the capacity of one compute unit, rounded up
    (`kfd_get_cu_occupancy` in kfd_process.c). So it reports the number of full units, not the
    number of active units.
    """
    if isinstance(occupied, (Missing, list)):
        return occupied
    return min(100.0, 100 * occupied / compute_units) if compute_units else _NO_UNITS


def of_job(processes: Reading, memory_bytes: Reading, occupancy: Reading) -> dict[str, Reading]:
    """Return the readings of one GPU by metric."""
    return dict(zip(METRICS, (processes, memory_bytes, occupancy), strict=True))
