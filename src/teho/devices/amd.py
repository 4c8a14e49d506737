"""AMD GPUs, read from sysfs: no library, no root, no daemon.

Files and units are those of the kernel's amdgpu documentation ("GPU Power/Thermal
Controls and Monitoring") and of its KFD driver. Each file holds one whole number. It is
opened once and read again in place, which sysfs answers afresh every time.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from teho.devices.amd_topology import (
    ANSWER_BYTES,
    AmdGpu,
    amd_cards,
    find_amd_gpus,
    number_in,
    parse_number,
)
from teho.devices.procfile import read_text
from teho.devices.visible import visible_rocm
from teho.errors import DeviceError
from teho.model.device import Device, Reading, Readings
from teho.model.missing import Missing, Reason

__all__ = ["AmdSource"]

_HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's PROC_PID_INIT_INO: the namespace whose process numbers KFD uses."""

_REASONS = {
    errno.ENOENT: Reason.ABSENT,
    errno.EACCES: Reason.FORBIDDEN,
    errno.EPERM: Reason.FORBIDDEN,
    errno.EOPNOTSUPP: Reason.UNSUPPORTED,
}
_FOR_GOOD = (Reason.UNSUPPORTED, Reason.ABSENT)
_PROCESS_IS_GONE = (errno.ENOENT, errno.ENODEV, errno.ESRCH)

_THROTTLE = Missing(
    Reason.UNSUPPORTED,
    "amdgpu says why clocks are held down only in gpu_metrics, whose layout differs by GPU",
)
_PCIE = Missing(Reason.UNSUPPORTED, "reading pcie_bw blocks for a second while it counts")
_NEVER_READ: dict[str, Reading] = {
    "gpu_energy_j": Missing(Reason.ABSENT, "sysfs has no energy counter in text form"),
    "gpu_thermal_throttle_percent": _THROTTLE,
    "gpu_power_throttle_percent": _THROTTLE,
    "gpu_pcie_receive_bytes_per_s": _PCIE,
    "gpu_pcie_send_bytes_per_s": _PCIE,
}
_SILENT_DIE = Missing(
    Reason.UNSUPPORTED, "this die reports no power: its card's other die reports for both"
)
_NO_POWER = Missing(Reason.FAILED, "the power sensor reads 0 W, which no GPU draws")
_SHARED_MEMORY = Missing(
    Reason.UNSUPPORTED,
    "the driver counts no memory of the GPU's own; an APU such as MI300A uses the node's",
)
_NO_KFD = Missing(Reason.ABSENT, "KFD is not there, which would list the processes on a GPU")
_KFD_COUNTS_NO_MEMORY = Missing(
    Reason.ABSENT, "this kernel's KFD does not count the memory of a process"
)
_OTHER_PID_NAMESPACE = Missing(
    Reason.UNSUPPORTED, "KFD numbers processes as the host does, this container otherwise"
)


class _Spec(NamedTuple):
    """Where a metric stands, and how the file's number becomes the metric's unit."""

    metric: str
    paths: tuple[str, ...]
    """Candidates, of which the one with the best first answer is taken."""
    divisor: int = 1
    maximum: int | None = None
    zero: Missing | None = None
    """What an exact zero means where it is no value."""


class AmdSource:
    """All AMD GPUs of the job, as a `teho.model.device.Source`.

    Args:
        environment: where `ROCR_VISIBLE_DEVICES` and its like are looked up.
        root: a folder that holds `sys` and `proc`.

    Raises:
        DeviceError: sysfs shows no AMD GPU, or none that is the job's.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    def __init__(self, environment: Mapping[str, str], root: Path = Path("/")) -> None:
        top = str(root).rstrip("/")
        cards = amd_cards(top)
        found, notes = find_amd_gpus(top, cards)
        if not found:
            raise DeviceError(
                f"none of the {len(cards)} AMD GPUs here is the job's: its device cgroup hides them"
                if cards
                else f"no AMD GPU on this node ({top}/sys/class/drm has none)",
                "one that the amdgpu driver runs",
                "ask the scheduler for a GPU, or see what is there: ls /sys/class/drm",
            )
        by_device = {gpu.device: gpu for gpu in found}
        chosen, said = visible_rocm(environment, list(by_device))
        if not chosen:
            raise DeviceError(
                "; ".join([f"none of the {len(found)} AMD GPUs here is the job's", *said]),
                "one that ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES names",
                "env | grep VISIBLE_DEVICES",
            )
        # Partitions of one card (MI300X) are GPUs of their own with one folder between them.
        by_card: dict[str, list[AmdGpu]] = {}
        for device in chosen:
            gpu = by_device[device]
            by_card.setdefault(gpu.directory, []).append(gpu)
        parts = list(by_card.values())
        self.devices = tuple(gpus[0].device for gpus in parts)
        self.notes = (*notes, *said, *_cautions(parts, len(cards)))
        self._gpus = [_Gpu(gpus) for gpus in parts]
        self._processes = _Processes(top)

    def read(self, pids: frozenset[int]) -> Readings:
        """Read every metric of every GPU now; see `Source.read`."""
        of_job = self._processes.read(pids, self._gpus)
        return {gpu.id: gpu.read(of_job[gpu.id]) for gpu in self._gpus}

    def close(self) -> None:
        """Close all files; safe to call twice. There is nothing to read after it."""
        for gpu in self._gpus:
            gpu.close()
        self._gpus = []


class _Gpu:
    """One GPU of the job: what is settled, and what is asked at every sample."""

    def __init__(self, parts: list[AmdGpu]) -> None:
        gpu = parts[0]
        self.id = gpu.device.id
        self.kfd_ids = [part.kfd_id for part in parts if part.kfd_id]
        self._settled = dict(_NEVER_READ)
        self._signals: list[_Signal] = []
        if not self.kfd_ids:
            self._settled |= _of_job(_NO_KFD, _NO_KFD)
        if _shares_memory(gpu.directory):
            self._settled |= _of_job(_SHARED_MEMORY, _SHARED_MEMORY)
            self._settled["gpu_memory_used_bytes"] = _SHARED_MEMORY
        for spec in _specs(gpu):
            if spec.metric not in self._settled:
                self._choose(spec)

    def _choose(self, spec: _Spec) -> None:
        """Ask each candidate once and keep the best; a refusal for good is not asked again."""
        signals = [_Signal(path, spec) for path in spec.paths]
        answers = [signal.read() for signal in signals]
        best = min(range(len(signals)), key=lambda at: _rank(answers[at]))
        answer = answers[best]
        if isinstance(answer, Missing) and answer.reason in _FOR_GOOD:
            self._settled[spec.metric] = answer
        else:
            self._signals.append(signals.pop(best))
        for signal in signals:
            signal.close()

    def read(self, of_job: dict[str, Reading]) -> dict[str, Reading]:
        values = of_job | self._settled
        for signal in self._signals:
            values[signal.metric] = signal.read()
        return values

    def close(self) -> None:
        for signal in self._signals:
            signal.close()


class _Signal:
    """One metric of one GPU: a file that is kept open."""

    __slots__ = ("_descriptor", "_name", "_path", "_spec", "metric")

    def __init__(self, path: str, spec: _Spec) -> None:
        self.metric = spec.metric
        self._path = path
        self._name = path.rpartition("/")[2]
        self._spec = spec
        self._descriptor = -1

    def read(self) -> Reading:
        """Return the value in the metric's unit, or why there is none."""
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self._path, os.O_RDONLY)
            number = parse_number(os.pread(self._descriptor, ANSWER_BYTES, 0))
        except OSError as error:
            return self._refusal(error)
        except ValueError as error:
            return Missing(Reason.FAILED, f"{self._name}: {error}")
        _, _, divisor, maximum, zero = self._spec
        if number == 0 and zero is not None:
            return zero
        if maximum is not None and number > maximum:
            return Missing(Reason.FAILED, f"{self._name}: {number} is above {maximum}")
        return number if divisor == 1 else number / divisor

    def _refusal(self, error: OSError) -> Missing:
        # sysfs checks permissions when a file is opened. EPERM from an open one is how amdgpu
        # says that the GPU is being reset or is suspended (amdgpu_pm.c).
        if error.errno == errno.EPERM and self._descriptor >= 0:
            return Missing(Reason.FAILED, f"{self._name}: the GPU is being reset or is suspended")
        return _missing(error, self._name)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class _Processes:
    """The job's processes on its GPUs, from KFD's own list."""

    def __init__(self, top: str) -> None:
        self._directory = f"{top}/sys/class/kfd/kfd/proc"
        try:
            namespace = os.readlink(f"{top}/proc/self/ns/pid")  # noqa: PTH115 (no file: no path)
        except OSError:
            namespace = _HOST_PID_NAMESPACE
        self._foreign = namespace != _HOST_PID_NAMESPACE

    def read(self, pids: frozenset[int], gpus: Iterable[_Gpu]) -> dict[str, dict[str, Reading]]:
        """Return, by device id, how many of `pids` hold memory there, and how many bytes."""
        alive = self._alive(pids)
        if isinstance(alive, Missing):
            return {gpu.id: _of_job(alive, alive) for gpu in gpus}
        tallies = {gpu.id: self._tally(gpu.kfd_ids, alive) for gpu in gpus}
        # No file for this GPU means that it is unused; no file for any, though the processes are
        # still there, that the kernel does not keep such files.
        unlisted = _of_job(0, 0)
        if alive and not any(tallies.values()) and self._alive(alive):
            unlisted = _of_job(_KFD_COUNTS_NO_MEMORY, _KFD_COUNTS_NO_MEMORY)
        return {gpu_id: tally or unlisted for gpu_id, tally in tallies.items()}

    def _alive(self, pids: frozenset[int]) -> Missing | frozenset[int]:
        """Return which of `pids` have opened KFD; most helpers of a program never do."""
        if self._foreign:
            return _OTHER_PID_NAMESPACE
        try:
            names = os.listdir(self._directory)  # noqa: PTH208 (no Path objects while sampling)
        except OSError as error:
            return _missing(error, "kfd/proc")
        return pids.intersection(int(name) for name in names if name.isdecimal())

    def _tally(self, kfd_ids: list[str], pids: frozenset[int]) -> dict[str, Reading]:
        """Add up one GPU; empty where no process has a file for it.

        These files are not kept open: processes come and go, and many ranks on many GPUs
        would use up the file descriptors that the recorder may have.
        """
        sizes: dict[int, int] = {}
        for pid in pids:
            for kfd_id in kfd_ids:
                try:
                    size_bytes = number_in(f"{self._directory}/{pid}/vram_{kfd_id}")
                except OSError as error:
                    if error.errno in _PROCESS_IS_GONE:
                        continue
                    missing = _missing(error, "vram of a process")
                    return _of_job(missing, missing)
                except ValueError as error:
                    missing = Missing(Reason.FAILED, f"vram of a process: {error}")
                    return _of_job(missing, missing)
                sizes[pid] = sizes.get(pid, 0) + size_bytes
        if not sizes:
            return {}
        # KFD makes a file for every GPU that a process may use; memory shows which it does use.
        return _of_job(sum(size > 0 for size in sizes.values()), sum(sizes.values()))


def _specs(gpu: AmdGpu) -> tuple[_Spec, ...]:
    folder, hwmon = gpu.directory, gpu.hwmon
    return (
        _Spec("gpu_busy_percent", (f"{folder}/gpu_busy_percent",), maximum=100),
        _Spec("gpu_memory_busy_percent", (f"{folder}/mem_busy_percent",), maximum=100),
        _Spec("gpu_memory_used_bytes", (f"{folder}/mem_info_vram_used",)),
        _Spec(  # a product offers an average (MI200), the present power (MI300), or both
            "gpu_power_w",
            (f"{hwmon}/power1_average", f"{hwmon}/power1_input"),
            divisor=1_000_000,
            zero=_SILENT_DIE if gpu.two_dies else _NO_POWER,
        ),
        _Spec("gpu_sm_clock_mhz", (f"{hwmon}/freq1_input",), divisor=1_000_000),
        _Spec("gpu_memory_clock_mhz", (f"{hwmon}/freq2_input",), divisor=1_000_000),
        _Spec("gpu_temperature_c", (_temperature_path(hwmon),), divisor=1000),
    )


def _temperature_path(hwmon: str) -> str:
    """Return the file of the chip's temperature.

    The junction, its hottest spot, is what amdgpu holds against the limit, and all
    data-centre products report it; the edge is cooler and not everywhere. `mem` is another chip.
    """
    files = {read_text(Path(f"{hwmon}/temp{n}_label")): f"temp{n}_input" for n in (1, 2, 3)}
    return f"{hwmon}/{files.get('junction') or files.get('edge') or 'temp1_input'}"


def _shares_memory(directory: str) -> bool:
    try:
        return number_in(f"{directory}/mem_info_vram_total") == 0
    except OSError as error:
        return error.errno == errno.ENOENT
    except ValueError:
        return False


def _cautions(parts: list[list[AmdGpu]], card_count: int) -> list[str]:
    """Return what a reader has to know about cards that are not one GPU."""
    notes = []
    if len(parts) < card_count and any(gpus[0].two_dies for gpus in parts):
        notes.append(
            "two AMD GPUs (dies) share a card, and one of them reports power for both; the job has "
            f"{len(parts)} of the node's {card_count} GPUs, so its power may hold another job's "
            "or lack some of its own"
        )
    notes.extend(
        f"{gpus[0].device.id} is partitioned; the job's {len(gpus)} parts of it count as one GPU, "
        "since sysfs has figures of the whole card only"
        for gpus in parts
        if len(gpus) > 1
    )
    return notes


def _rank(answer: Reading) -> int:
    """Order answers: a number, a failure that may pass, not offered, not there."""
    if not isinstance(answer, Missing):
        return 0
    return 2 + _FOR_GOOD.index(answer.reason) if answer.reason in _FOR_GOOD else 1


def _of_job(processes: Reading, memory_bytes: Reading) -> dict[str, Reading]:
    return {"gpu_job_processes": processes, "gpu_job_memory_bytes": memory_bytes}


def _missing(error: OSError, what: str) -> Missing:
    code = error.errno or 0
    return Missing(_REASONS.get(code, Reason.FAILED), f"{what}: {os.strerror(code)}")
