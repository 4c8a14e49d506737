"""AMD GPUs, read from sysfs, without a library, root rights or a daemon.

Files and units: the kernel's amdgpu documentation ("GPU Power/Thermal Controls and Monitoring") and
its KFD driver. Most files have one whole number; `gpu_metrics` is a table. Each file stays open,
and sysfs creates its content again at each read.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.devices.amd.counters import Counters
from teho.devices.amd.errors import MemoryErrors
from teho.devices.amd.files import FOR_GOOD, why_missing
from teho.devices.amd.packages import SILENT_DIE, pair_dies
from teho.devices.amd.processes import NO_KFD, GpuOfJob, Processes, of_job
from teho.devices.amd.topology import AmdGpu, amd_cards, find_amd_gpus
from teho.devices.amd.visible import visible_rocm
from teho.devices.procfile import KeptFile, number_in, parse_number, read_text
from teho.errors import DeviceError
from teho.model.device import Device, GpuDetails, GpuProcess, GpuState, Reading, Readings
from teho.model.missing import Missing, Reason

__all__ = ["AmdEnergy", "AmdSource"]

_PCIE = Missing(
    Reason.UNSUPPORTED,
    "Teho does not read the PCIe traffic of AMD GPUs: reading pcie_bw takes a second, and "
    "gpu_metrics has only the sum of both directions, in whole GB/s",
)
_PIPES = Missing(
    Reason.UNSUPPORTED,
    "amdgpu does not report which pipes are active; rocprofiler has such counters, but it must "
    "instrument the program",
)
_NO_NVLINK = Missing(Reason.UNSUPPORTED, "AMD GPUs are linked by XGMI, not by NVLink")
_NEVER_READ: dict[str, Reading] = {
    "gpu_sm_active_percent": Missing(
        Reason.UNSUPPORTED,
        "KFD does not count the compute units that have work; it counts wavefronts, which give "
        "the SM occupancy",
    ),
    "gpu_tensor_percent": _PIPES,
    "gpu_fp64_percent": _PIPES,
    "gpu_fp32_percent": _PIPES,
    "gpu_fp16_percent": _PIPES,
    "gpu_integer_percent": _PIPES,
    "gpu_pcie_receive_bytes_per_s": _PCIE,
    "gpu_pcie_send_bytes_per_s": _PCIE,
    "gpu_nvlink_receive_bytes_per_s": _NO_NVLINK,
    "gpu_nvlink_send_bytes_per_s": _NO_NVLINK,
    "gpu_nvlink_errors": _NO_NVLINK,
    "gpu_xid_errors": Missing(
        Reason.UNSUPPORTED, "amdgpu reports errors only in the kernel's log, which needs root"
    ),
    "gpu_job_busy_percent": Missing(
        Reason.UNSUPPORTED, "KFD does not report for how long a process had kernels running"
    ),
}
_IS_SHARE_OF_BANDWIDTH = Missing(
    Reason.UNSUPPORTED,
    "this GPU reports the share of its memory bandwidth that was used, not how long its memory was "
    "busy",
)
_IS_SHARE_OF_TIME = Missing(
    Reason.UNSUPPORTED,
    "this GPU reports how long its memory was busy, not the amount of data that was read or "
    "written",
)
_NO_POWER = Missing(Reason.FAILED, "the power sensor reads 0 W, which cannot be true")
_SHARED_MEMORY = Missing(
    Reason.UNSUPPORTED,
    "the driver reports no separate GPU memory; an APU such as MI300A uses the node's memory",
)
_STATE = GpuState(
    p_state=Missing(
        Reason.UNSUPPORTED, "amdgpu has no P-states; its clocks show how fast the GPU runs"
    ),
    unlisted={"graphics": Missing(Reason.UNSUPPORTED, "KFD lists only processes that compute")},
)
"""The same for all GPUs."""
_NUMBER_BYTES = 64
"""More than any number has, so that no number is cut. A whole page would take longer."""
_BANDWIDTH_FAMILY = ("gfx94", "gfx95")
"""Architectures from MI300 on. Their memory activity is `DramBandwidthUtilization`, the share of
the bandwidth of all HBM stacks (smu_v13_0_6_ppt.c, smu_v13_0_12_ppt.c)."""


class _Spec(NamedTuple):
    """The file of a metric, and the conversion of its number to the metric's unit."""

    metric: str
    paths: tuple[str, ...]
    """Candidates; the one with the best first answer is used."""
    divisor: int = 1
    maximum: int | None = None
    zero: Missing | None = None
    """Meaning of an exact zero, if it is not a value."""


class AmdSource:
    """All AMD GPUs of the job, as a `teho.model.device.DeviceSource`.

    Args:
        environment: the program's, with variables such as `ROCR_VISIBLE_DEVICES`.
        root: a folder that contains `sys` and `proc`.

    Raises:
        DeviceError: sysfs shows no AMD GPU, or no GPU of the job.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    def __init__(self, environment: Mapping[str, str], root: Path = Path("/")) -> None:
        top = str(root).rstrip("/")
        cards = amd_cards(top)
        found, notes = find_amd_gpus(top, cards)
        if not found:
            raise DeviceError(
                f"none of the {len(cards)} AMD GPUs here belongs to this job: the job's device "
                "cgroup hides them"
                if cards
                else f"no AMD GPU on this node ({top}/sys/class/drm has none)",
                "a GPU that uses the amdgpu driver",
                "request a GPU from the scheduler, or list the devices: ls /sys/class/drm",
            )
        found, partners, doubts = pair_dies(found, cards)
        by_device = {gpu.device: gpu for gpu in found}
        chosen, remarks = visible_rocm(environment, list(by_device))
        if not chosen:
            raise DeviceError(
                "; ".join(
                    [f"none of the {len(found)} AMD GPUs here belongs to this job", *remarks]
                ),
                "a GPU that ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES names",
                "env | grep VISIBLE_DEVICES",
            )
        # Partitions of one card (MI300X) are separate GPUs that share one folder.
        by_card: dict[str, list[AmdGpu]] = {}
        for device in chosen:
            gpu = by_device[device]
            by_card.setdefault(gpu.directory, []).append(gpu)
        parts = list(by_card.values())
        self.devices = tuple(gpus[0].device for gpus in parts)
        self.notes = (*notes, *doubts, *remarks, *_cautions(parts, partners, len(cards)))
        self._gpus = [_Gpu(gpus) for gpus in parts]
        self._processes = Processes(top)

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:  # noqa: ARG002 - a Source's
        """Read all metrics of all GPUs; see `DeviceSource.read`."""
        by_gpu = self._processes.read(pids, [gpu.of_job for gpu in self._gpus])
        return {gpu.id: gpu.read(by_gpu[gpu.id]) for gpu in self._gpus}

    def read_energy(self) -> list[Reading]:
        """Read only the energy counters, in J, in the order of `devices`."""
        return [gpu.read_energy() for gpu in self._gpus]

    def details(self) -> dict[str, GpuDetails]:
        """Return the program's processes on each GPU; see `DeviceSource.details`."""
        found: dict[str, GpuDetails] = {}
        for device in self.devices:
            memory = self._processes.memory.get(device.id, {})
            using = {pid: GpuProcess(size, ("compute",)) for pid, size in memory.items()}
            found[device.id] = GpuDetails(_STATE, using)
        return found

    def alerts(self) -> list[str]:
        """Return sentences about events since the last call; see `DeviceSource.alerts`."""
        return [sentence for gpu in self._gpus for sentence in gpu.take_alerts()]

    def close(self) -> None:
        """Close all files; can be called twice. Later readings are empty."""
        for gpu in self._gpus:
            gpu.close()
        self._gpus = []


class AmdEnergy:
    """The energy counters of the job's GPUs; see `AmdSource`."""

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        self._source = AmdSource(environment, root)
        self.devices, self.notes = self._source.devices, self._source.notes
        self.read, self.close = self._source.read_energy, self._source.close


class _Gpu:
    """One GPU of the job: metrics that it does not offer, and files that each sample reads."""

    def __init__(self, parts: list[AmdGpu]) -> None:
        gpu = parts[0]
        self.id = gpu.device.id
        has_memory = not _shares_memory(gpu.directory)
        self.of_job = GpuOfJob(
            id=self.id,
            kfd_ids=tuple(part.node.kfd_id for part in parts if part.node.kfd_id),
            compute_units=sum(part.node.compute_units for part in parts),
            counts_memory=has_memory,
        )
        self._settled = dict(_NEVER_READ)
        self._signals: list[_Signal] = []
        if not self.of_job.kfd_ids:
            self._settled |= of_job(NO_KFD, NO_KFD, NO_KFD)
        if not has_memory:
            names = ("gpu_job_processes", "gpu_job_memory_bytes", "gpu_memory_used_bytes")
            self._settled |= dict.fromkeys(names, _SHARED_MEMORY)
        if _memory_metric(gpu) == "gpu_dram_percent":
            self._settled["gpu_memory_busy_percent"] = _IS_SHARE_OF_BANDWIDTH
        else:
            self._settled["gpu_dram_percent"] = _IS_SHARE_OF_TIME
        for spec in _specs(gpu):
            if spec.metric not in self._settled:
                self._choose(spec)
        self._counters = Counters(gpu, _memory_metric(gpu))
        self._errors = MemoryErrors(self.id, gpu.directory)

    def _choose(self, spec: _Spec) -> None:
        """Read each candidate once and keep the best. A lasting refusal is not read again."""
        signals = [_Signal(path, spec) for path in spec.paths]
        answers = [signal.read() for signal in signals]
        best = min(range(len(signals)), key=lambda at: _rank(answers[at]))
        answer = answers[best]
        if isinstance(answer, Missing) and answer.reason in FOR_GOOD:
            self._settled[spec.metric] = answer
        else:
            self._signals.append(signals.pop(best))
        for signal in signals:
            signal.close()

    def read(self, on_it: dict[str, Reading]) -> dict[str, Reading]:
        values = on_it | self._settled
        for signal in self._signals:
            values[signal.metric] = signal.read()
        self._counters.add_to(values)
        return values | self._errors.read()

    def read_energy(self) -> Reading:
        return self._counters.read_energy()

    def take_alerts(self) -> list[str]:
        taken = [*self._counters.energy.alerts, *self._errors.alerts]
        self._counters.energy.alerts.clear()
        self._errors.alerts.clear()
        return taken

    def close(self) -> None:
        for signal in self._signals:
            signal.close()
        self._counters.close()


class _Signal(KeptFile):
    """One metric of one GPU: a file that stays open."""

    def __init__(self, path: str, spec: _Spec) -> None:
        super().__init__(path)
        self.metric = spec.metric
        self._name = path.rpartition("/")[2]
        self._spec = spec

    def read(self) -> Reading:
        """Return the value in the metric's unit, or why it is missing."""
        try:
            number = parse_number(self.page(_NUMBER_BYTES))
        except (OSError, ValueError) as error:
            # sysfs checks permissions when a file is opened. With EPERM at a later read, amdgpu
            # reports that the GPU is being reset or is suspended (amdgpu_pm.c).
            if isinstance(error, OSError) and error.errno == errno.EPERM and self.is_open:
                return Missing(
                    Reason.FAILED, f"{self._name}: the GPU is being reset or is suspended"
                )
            return why_missing(error, self._name)
        _, _, divisor, maximum, zero = self._spec
        if number == 0 and zero is not None:
            return zero
        if maximum is not None and number > maximum:
            return Missing(Reason.FAILED, f"{self._name}: {number} is above {maximum}")
        return number if divisor == 1 else number / divisor


def _specs(gpu: AmdGpu) -> tuple[_Spec, ...]:
    folder, hwmon = gpu.directory, gpu.hwmon
    return (
        _Spec("gpu_busy_percent", (f"{folder}/gpu_busy_percent",), maximum=100),
        _Spec(_memory_metric(gpu), (f"{folder}/mem_busy_percent",), maximum=100),
        _Spec("gpu_memory_used_bytes", (f"{folder}/mem_info_vram_used",)),
        _Spec(  # a product offers an average (MI200), the present power (MI300), or both
            "gpu_power_w",
            (f"{hwmon}/power1_average", f"{hwmon}/power1_input"),
            divisor=1_000_000,
            zero=SILENT_DIE if gpu.two_dies else _NO_POWER,
        ),
        _Spec("gpu_sm_clock_mhz", (f"{hwmon}/freq1_input",), divisor=1_000_000),
        _Spec("gpu_memory_clock_mhz", (f"{hwmon}/freq2_input",), divisor=1_000_000),
        _Spec("gpu_temperature_c", (_temperature_path(hwmon),), divisor=1000),
    )


def _memory_metric(gpu: AmdGpu) -> str:
    """Return the metric that this GPU's memory activity measures."""
    is_bandwidth = gpu.device.architecture.startswith(_BANDWIDTH_FAMILY)
    return "gpu_dram_percent" if is_bandwidth else "gpu_memory_busy_percent"


def _temperature_path(hwmon: str) -> str:
    """Return the file of the chip's temperature.

    amdgpu compares the junction, the hottest spot, with the limit, and all data-centre products
    report it. The edge is cooler, and some products do not report it. `mem` is another chip.
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


def _cautions(
    parts: Sequence[Sequence[AmdGpu]], partners: Mapping[str, str], card_count: int
) -> list[str]:
    """Return notes about cards that are not exactly one GPU."""
    notes = []
    addresses = {gpus[0].node.address for gpus in parts}
    single = [
        gpu for gpu, *_ in parts if gpu.two_dies and partners.get(gpu.node.address) not in addresses
    ]
    if single:
        notes.append(
            "two AMD GPUs (dies) share a card, and one die reports power and energy for both. "
            f"The job has {len(parts)} of the node's {card_count} GPUs. On "
            f"{len(single)} card{'s' * (len(single) > 1)}, the job has only one of the two dies: "
            "the power and energy of such a card may include another job, or may be too low"
        )
    notes.extend(
        f"{gpus[0].device.id} is partitioned; the job's {len(gpus)} partitions count as one GPU, "
        "because sysfs has values only for the whole card"
        for gpus in parts
        if len(gpus) > 1
    )
    return notes


def _rank(answer: Reading) -> int:
    """Return the rank of an answer: a number, a temporary failure, not offered, absent."""
    if not isinstance(answer, Missing):
        return 0
    return 2 + FOR_GOOD.index(answer.reason) if answer.reason in FOR_GOOD else 1
