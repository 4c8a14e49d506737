"""NVIDIA GPUs and MIG instances, through the driver's own library (NVML).

Every figure comes from the unmodified `pynvml` of nvidia-ml-py. What a GPU, its driver
or its administrator does not give is a `Missing` with the reason; once the list of
devices stands, nothing here raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, thread_time
from typing import Any

import pynvml

from teho.devices.nvidia_devices import Found, Handle, find_gpus, missing_for, no_driver
from teho.devices.visible import visible_cuda
from teho.errors import DeviceError
from teho.model.device import Device, Reading, Readings
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason

__all__ = ["NvidiaSource"]

_METRICS = tuple(metric.name for metric in metrics_of("gpu"))

_NOT_AVAILABLE = frozenset({2**32 - 1, 2**64 - 1})
"""NVML_VALUE_NOT_AVAILABLE of both widths: no figure, though the call succeeds."""
_OF_WHOLE_GPU = Missing(
    Reason.UNSUPPORTED, "measured for the whole GPU alone, which other MIG instances share"
)
_NO_PROCESS_MEMORY = Missing(Reason.UNSUPPORTED, "the driver does not tell memory by process")
_OTHER_PIDS = Missing(
    Reason.FAILED,
    "inside a container the driver's process ids are not those of the program's processes",
)

_THERMAL_BITS = (
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
)
_POWER_BITS = (
    pynvml.nvmlClocksThrottleReasonSwPowerCap | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
)

_VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Member of a field's union, by its `valueType`."""
_SENT, _RECEIVED = pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES

_BUSY_METRICS = ("gpu_busy_percent", "gpu_memory_busy_percent")
_PROCESS_METRICS = ("gpu_job_processes", "gpu_job_memory_bytes")
_THROTTLE_METRICS = ("gpu_thermal_throttle_percent", "gpu_power_throttle_percent")
_SEND, _RECEIVE = "gpu_pcie_send_bytes_per_s", "gpu_pcie_receive_bytes_per_s"

# For 8 GPUs that is 1.2 ms, within the 3 ms a second that the whole recorder may take.
_CHEAP_CALL_S = 150e-6

# Inode of the first PID namespace: PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h.
_HOST_PID_NAMESPACE = "pid:[4026531836]"

_Out = dict[str, Reading]
_Way = Callable[[Handle, _Out], None]


def _number(value: int) -> int:
    if value in _NOT_AVAILABLE:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_DATA)
    return value


def _fields(handle: Handle, *ids: int) -> list[int]:
    """Read some of NVML's field values; fails as a whole where one of them fails."""
    numbers = []
    for answer in pynvml.nvmlDeviceGetFieldValues(handle, ids):
        if answer.nvmlReturn != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(answer.nvmlReturn)
        if answer.valueType >= len(_VALUE_FIELDS):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        numbers.append(_number(getattr(answer.value, _VALUE_FIELDS[answer.valueType])))
    return numbers


class _Signal:
    """Some metrics that one call gives, and the calls to try in turn."""

    __slots__ = ("metrics", "missing", "ways")

    def __init__(self, metrics: tuple[str, ...], ways: tuple[_Way, ...]) -> None:
        self.metrics = metrics
        self.ways = list(ways)
        self.missing: Missing | None = None
        """Why no way is left to try."""

    def read(self, handle: Handle, out: _Out) -> None:
        """Put the readings into `out`; raises NVMLError only for a lost GPU."""
        missing = self.missing
        while self.ways:
            try:
                self.ways[0](handle, out)
            except pynvml.NVMLError as error:
                missing = missing_for(error.value)
                if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
                    raise
                if missing.reason is not Reason.UNSUPPORTED:
                    break
                del self.ways[0]  # it never will be: asking again costs time at each sample
                self.missing = missing
            else:
                return
        if missing is not None:
            out.update(dict.fromkeys(self.metrics, missing))


def _utilization(handle: Handle, out: _Out) -> None:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    out["gpu_busy_percent"] = _number(rates.gpu)
    out["gpu_memory_busy_percent"] = _number(rates.memory)


def _memory(handle: Handle, out: _Out) -> None:
    # The second version leaves the driver's own reserve out of `used`.
    out["gpu_memory_used_bytes"] = _number(
        pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used
    )


def _memory_old(handle: Handle, out: _Out) -> None:
    out["gpu_memory_used_bytes"] = _number(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def _power(handle: Handle, out: _Out) -> None:
    # The instant power: the averaged one takes milliseconds to read on new GPUs, and the
    # mean over time comes from the energy counter anyway.
    out["gpu_power_w"] = _fields(handle, pynvml.NVML_FI_DEV_POWER_INSTANT)[0] / 1000


def _power_old(handle: Handle, out: _Out) -> None:
    out["gpu_power_w"] = _number(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000


def _energy(handle: Handle, out: _Out) -> None:
    out["gpu_energy_j"] = _number(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000


def _core_clock(handle: Handle, out: _Out) -> None:
    out["gpu_sm_clock_mhz"] = _number(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def _memory_clock(handle: Handle, out: _Out) -> None:
    clock_mhz = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)
    out["gpu_memory_clock_mhz"] = _number(clock_mhz)


def _temperature(handle: Handle, out: _Out) -> None:
    celsius = pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)
    out["gpu_temperature_c"] = _number(celsius)


def _temperature_old(handle: Handle, out: _Out) -> None:
    celsius = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    out["gpu_temperature_c"] = _number(celsius)


def _throttle(handle: Handle, out: _Out) -> None:
    _throttle_from(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle), out)


def _throttle_old(handle: Handle, out: _Out) -> None:
    _throttle_from(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), out)


def _throttle_from(bits: int, out: _Out) -> None:
    _number(bits)
    out["gpu_thermal_throttle_percent"] = 100 if bits & _THERMAL_BITS else 0
    out["gpu_power_throttle_percent"] = 100 if bits & _POWER_BITS else 0


class _Traffic:
    """PCIe traffic of one GPU: the mean since it was last read, where the driver counts bytes.

    NVML's directions are the GPU's: what it sends goes to the host.
    """

    def __init__(self, handle: Handle) -> None:
        self._before: tuple[float, list[int]] | None = None
        self.signal = _Signal((_RECEIVE, _SEND), (self._counted, self._sampled))
        self.every = 10
        """Samples from one reading to the next, by what a reading costs."""
        with contextlib.suppress(pynvml.NVMLError):
            # Some drivers answer in 10 us, some wait for the GPU and take 0.4 ms of CPU time;
            # the second call is the one to judge by, the first may set things up.
            for _ in range(2):
                began_s = thread_time()
                self._counted(handle, {})
                self.every = 1 if thread_time() - began_s < _CHEAP_CALL_S else 10
        self._before = None

    def _counted(self, handle: Handle, out: _Out) -> None:
        sent_received = _fields(handle, _SENT, _RECEIVED)
        now_s = monotonic()
        before, self._before = self._before, (now_s, sent_received)
        if before is None or before[0] == now_s:
            return
        sent, received = (
            (new - old) / (now_s - before[0])
            for new, old in zip(sent_received, before[1], strict=True)
        )
        # "Value can be wrapped", says nvml.h, but not at how many bits: no figure then.
        if sent >= 0 and received >= 0:
            out[_SEND], out[_RECEIVE] = sent, received

    def _sampled(self, handle: Handle, out: _Out) -> None:
        # Each of the two calls blocks for some 20 ms while the driver counts.
        self.every = 10
        for name, direction in (
            (_SEND, pynvml.NVML_PCIE_UTIL_TX_BYTES),
            (_RECEIVE, pynvml.NVML_PCIE_UTIL_RX_BYTES),
        ):
            out[name] = _number(pynvml.nvmlDeviceGetPcieThroughput(handle, direction)) * 1000


class _Pids:
    """Whether NVML's process ids are those that the program's processes have here.

    In a container the driver may give the host's ids, or hide processes. There an id
    that matches none of ours, or an empty list, proves nothing until one has matched.
    """

    def __init__(self, root: Path) -> None:
        try:
            namespace = str((root / "proc/self/ns/pid").readlink())
        except OSError:
            namespace = ""
        self.comparable = namespace == _HOST_PID_NAMESPACE
        self.own: frozenset[int] = frozenset()
        """The program's live processes."""

    # The binding's call without a version raises errors of another kind on old drivers.
    def read(self, handle: Handle, out: _Out) -> None:
        """Count the program's processes on one GPU, and their memory."""
        self._count(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle), out)

    def read_old(self, handle: Handle, out: _Out) -> None:
        """Do the same by the older call."""
        self._count(pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle), out)

    def _count(self, processes: list[Any], out: _Out) -> None:
        own = [process.usedGpuMemory for process in processes if process.pid in self.own]
        self.comparable = self.comparable or bool(own)
        if self.comparable:
            out["gpu_job_processes"] = len(own)
            out["gpu_job_memory_bytes"] = _NO_PROCESS_MEMORY if None in own else sum(own)
        else:
            out.update(dict.fromkeys(_PROCESS_METRICS, _OTHER_PIDS))


class _Gpu:
    """One GPU or MIG instance, and what it is known not to answer."""

    def __init__(self, device: Device, handle: Handle, pids: _Pids, position: int) -> None:
        self.id = device.id
        self._handle = handle
        self._lost: _Out = {}
        self._known: _Out = {}
        self._traffic: _Traffic | None = None
        self._turn = -position
        self._signals = [
            _Signal(_BUSY_METRICS, (_utilization,)),
            _Signal(("gpu_memory_used_bytes",), (_memory, _memory_old)),
            _Signal(("gpu_sm_clock_mhz",), (_core_clock,)),
            _Signal(("gpu_memory_clock_mhz",), (_memory_clock,)),
            _Signal(("gpu_temperature_c",), (_temperature, _temperature_old)),
            _Signal(_THROTTLE_METRICS, (_throttle, _throttle_old)),
            _Signal(_PROCESS_METRICS, (pids.read, pids.read_old)),
        ]
        if device.parent_id is None:
            self._signals.append(_Signal(("gpu_power_w",), (_power, _power_old)))
            self._signals.append(_Signal(("gpu_energy_j",), (_energy,)))
            self._traffic = _Traffic(handle)
        else:
            # Where a driver answers these for an instance, it means the whole GPU, and
            # seven instances would count its energy seven times.
            whole = ("gpu_power_w", "gpu_energy_j", _RECEIVE, _SEND)
            self._known = dict.fromkeys(whole, _OF_WHOLE_GPU)

    def read(self) -> _Out:
        """Read every metric now."""
        if self._lost:
            return dict(self._lost)
        out = dict(self._known)
        try:
            for signal in self._signals:
                signal.read(self._handle, out)
            # Where it is dear, one GPU at a time: the turns begin at different numbers.
            if self._traffic is not None and self._turn % self._traffic.every == 0:
                self._traffic.signal.read(self._handle, out)
        except pynvml.NVMLError as error:
            self._lost = dict.fromkeys(_METRICS, missing_for(error.value))
            return dict(self._lost)
        self._turn += 1
        return out


class NvidiaSource:
    """All NVIDIA GPUs of the job, as a `teho.model.device.Source`.

    PCIe traffic is the mean since it was last read where the driver counts bytes, else a
    sample of 20 ms; where either takes long, it comes with every tenth read only.

    Args:
        environment: the program's environment, for `CUDA_VISIBLE_DEVICES` and its like.
        root: a folder that holds `sys` and `proc`.

    Raises:
        DeviceError: no NVIDIA driver here, none that this user may use, or no GPU that
            is the job's; the text says which.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    def __init__(self, environment: Mapping[str, str], root: Path = Path("/")) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise no_driver(error.value) from None
        self._open = True
        try:
            found = find_gpus(root)
            self.devices, said = visible_cuda(environment, list(found.handles), found.legacy_names)
            self.notes = (*found.notes, *said, *_cautions(self.devices))
            if not self.devices:
                raise _no_gpu(found, environment, self.notes)
        except (DeviceError, pynvml.NVMLError) as error:
            self.close()
            if isinstance(error, pynvml.NVMLError):
                raise no_driver(error.value) from None
            raise
        self._pids = _Pids(root)
        self._gpus = [
            _Gpu(device, found.handles[device], self._pids, position)
            for position, device in enumerate(self.devices)
        ]

    def read(self, pids: frozenset[int]) -> Readings:
        """Read every metric of every GPU now; see `Source.read`."""
        self._pids.own = pids
        return {gpu.id: gpu.read() for gpu in self._gpus}

    def close(self) -> None:
        """Let go of the driver; safe to call twice. There is nothing to read after it."""
        if self._open:
            self._open, self._gpus = False, []
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def _no_gpu(found: Found, environment: Mapping[str, str], notes: tuple[str, ...]) -> DeviceError:
    why = "; ".join(notes)
    if not found.handles:
        text = "the NVIDIA driver shows no GPU to this user"
        return DeviceError(text + (f" ({why})" if why else ""), next_step="look at `nvidia-smi -L`")
    text = f"none of the {len(found.handles)} NVIDIA GPUs here is this job's"
    variable = environment.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        text += f": CUDA_VISIBLE_DEVICES is {variable!r}"
    return DeviceError(
        text + (f" ({why})" if why else ""),
        next_step="ask the scheduler for a GPU, or mend CUDA_VISIBLE_DEVICES",
    )


def _cautions(devices: tuple[Device, ...]) -> list[str]:
    """Return what the reader of the figures has to know about some models."""
    if any("GH200" in device.name for device in devices):
        return ["the energy counter of a GH200 is the whole module's, its CPU included"]
    return []
