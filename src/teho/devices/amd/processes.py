"""What a program's own processes hold and occupy on AMD GPUs, from KFD's list of them."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from typing import NamedTuple

from teho.devices.amd.files import number_in, why_missing
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["METRICS", "NO_KFD", "GpuOfJob", "Processes", "of_job"]

METRICS = ("gpu_job_processes", "gpu_job_memory_bytes", "gpu_sm_occupancy_percent")
"""What is answered for each GPU."""

NO_KFD = Missing(Reason.ABSENT, "KFD is not there, which would list the processes on a GPU")
_COUNTS_NO_MEMORY = Missing(
    Reason.ABSENT, "this kernel's KFD does not count the memory of a process"
)
_COUNTS_NO_WAVES = Missing(
    Reason.ABSENT, "this kernel's KFD does not count the compute units that a process occupies"
)
_NO_UNITS = Missing(Reason.ABSENT, "KFD does not say how many compute units the GPU has")
_OTHER_PID_NAMESPACE = Missing(
    Reason.UNSUPPORTED, "KFD numbers processes as the host does, this container otherwise"
)

_HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's PROC_PID_INIT_INO: the namespace whose process numbers KFD uses."""
_IS_GONE = (errno.ENOENT, errno.ENODEV, errno.ESRCH)


class GpuOfJob(NamedTuple):
    """What has to be known of a GPU to ask for the processes on it."""

    id: str
    kfd_ids: tuple[str, ...]
    """Its names in KFD's list: one, or one for each of the job's partitions."""
    compute_units: int
    """All of them; 0 if not known."""
    counts_memory: bool
    """Whether memory shows which processes use the GPU; an APU's does not."""


class _Tally:
    """What the job's processes come to on one GPU."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.occupied: Reading = 0


class Processes:
    """The job's processes on its GPUs.

    Args:
        top: the folder that holds `sys` and `proc`, without a slash at its end.
    """

    def __init__(self, top: str) -> None:
        self._directory = f"{top}/sys/class/kfd/kfd/proc"
        try:
            namespace = os.readlink(f"{top}/proc/self/ns/pid")  # noqa: PTH115 (no file: no path)
        except OSError:
            namespace = _HOST_PID_NAMESPACE
        self._foreign = namespace != _HOST_PID_NAMESPACE

    def read(self, pids: frozenset[int], gpus: Iterable[GpuOfJob]) -> dict[str, dict[str, Reading]]:
        """Return, by device id, what those of `pids` that use the GPU hold and occupy there."""
        alive = self._alive(pids)
        if isinstance(alive, Missing):
            return {gpu.id: of_job(alive, alive, alive) for gpu in gpus}
        tallies = {gpu.id: self._tally(gpu, alive) for gpu in gpus}
        # No file for this GPU means that it is unused; no file for any, though the processes are
        # still there, that the kernel does not keep such files.
        unlisted = of_job(0, 0, 0)
        if alive and not any(tallies.values()) and self._alive(alive):
            unlisted = of_job(_COUNTS_NO_MEMORY, _COUNTS_NO_MEMORY, _COUNTS_NO_MEMORY)
        return {gpu_id: tally or unlisted for gpu_id, tally in tallies.items()}

    def _alive(self, pids: frozenset[int]) -> Missing | frozenset[int]:
        """Return which of `pids` have opened KFD; most helpers of a program never do."""
        if self._foreign:
            return _OTHER_PID_NAMESPACE
        try:
            names = os.listdir(self._directory)  # noqa: PTH208 (no Path objects while sampling)
        except OSError as error:
            return why_missing(error, "kfd/proc")
        return pids.intersection(int(name) for name in names if name.isdecimal())

    def _tally(self, gpu: GpuOfJob, pids: frozenset[int]) -> dict[str, Reading]:
        """Add up one GPU; empty if no process has a file for it.

        These files are not kept open: processes come and go, and many ranks on many GPUs
        would use up the file descriptors that the recorder may have.
        """
        tally = _Tally()
        for pid in pids:
            for kfd_id in gpu.kfd_ids:
                try:
                    size_bytes = number_in(f"{self._directory}/{pid}/vram_{kfd_id}")
                except OSError as error:
                    if error.errno in _IS_GONE:
                        continue
                    missing = why_missing(error, "vram of a process")
                    return of_job(missing, missing, missing)
                except ValueError as error:
                    missing = Missing(Reason.FAILED, f"vram of a process: {error}")
                    return of_job(missing, missing, missing)
                tally.sizes[pid] = tally.sizes.get(pid, 0) + size_bytes
                if size_bytes or not gpu.counts_memory:
                    self._add_occupied(tally, f"{self._directory}/{pid}/stats_{kfd_id}")
        if not tally.sizes:
            return {}
        # KFD makes a file for every GPU that a process may use; memory shows which it does use.
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
            elif error.errno == errno.EINVAL:  # this GPU has no way to count (kfd_process.c)
                tally.occupied = Missing(Reason.UNSUPPORTED, "cu_occupancy: not on this GPU")
            elif error.errno not in _IS_GONE:
                tally.occupied = why_missing(error, "cu_occupancy")
        except ValueError as error:
            tally.occupied = Missing(Reason.FAILED, f"cu_occupancy: {error}")


def _share(occupied: Reading, compute_units: int) -> Reading:
    """Return the share of wavefronts that would fit of which this many are resident.

    KFD counts the wavefronts of a process at this moment and divides them by what one compute
    unit can hold (`kfd_get_cu_occupancy` in kfd_process.c), rounded up: that many units full is
    what it calls occupied, not that many units at work.
    """
    if isinstance(occupied, (Missing, list)):
        return occupied
    return min(100.0, 100 * occupied / compute_units) if compute_units else _NO_UNITS


def of_job(processes: Reading, memory_bytes: Reading, occupancy: Reading) -> dict[str, Reading]:
    """Return the readings of one GPU."""
    return dict(zip(METRICS, (processes, memory_bytes, occupancy), strict=True))
