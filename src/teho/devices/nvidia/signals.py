"""Signals: the metrics of one NVML call, alternative calls, and how often to make them."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from time import monotonic, thread_time

import pynvml

from teho.devices.nvidia.devices import Handle, missing_for, number
from teho.model.device import Reading
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

__all__ = [
    "BUSY_METRICS",
    "HARDLY_EVER",
    "PCIE_METRICS",
    "Out",
    "Signal",
    "Traffic",
    "Way",
    "fields",
    "pace",
    "plain_signals",
    "power_signals",
]

Out = dict[str, Reading]
Way = Callable[[Handle, Out], None]
"""Writes the readings of some metrics to a dictionary, or raises NVMLError."""

_FIELD = struct.Struct("24xIi8s")
"""valueType, nvmlReturn and value of nvmlFieldValue_t. The binding needs 1 us for each."""
_VALUES = tuple(map(struct.Struct, "dILQqiH"))
"""C type of the value, by its `valueType` (nvmlValueType_t)."""
_SENT, _RECEIVED = pynvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, pynvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES
_POWER = (pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_POWER_SCOPE_GPU)

_THERMAL_BITS = (
    pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
)
_POWER_BITS = (
    pynvml.nvmlClocksThrottleReasonSwPowerCap | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
)

_SEND, _RECEIVE = "gpu_pcie_send_bytes_per_s", "gpu_pcie_receive_bytes_per_s"
PCIE_METRICS = (_RECEIVE, _SEND)
BUSY_METRICS = ("gpu_busy_percent", "gpu_memory_busy_percent")

# Four calls of this length for each of 8 GPUs take 4.8 ms. One sample may take 5 ms.
_CHEAP_CALL_S = 150e-6
_RARELY = 10
"""Samples between two readings of an expensive signal."""
HARDLY_EVER = 30
"""Samples between two readings of a signal that almost never changes."""
_SLOWLY = 5
"""Samples between two readings of a signal that needs seconds to change."""


def fields(
    handle: Handle, *ids: int | tuple[int, int], besides: frozenset[int] = frozenset()
) -> list[int]:
    """Read some of NVML's field values. If one fails, raise its NVMLError.

    Args:
        handle: the GPU.
        ids: fields, or pairs of a field and its scope.
        besides: a field with one of these errors is left out, unless all fields have one.
    """
    numbers, left_out = [], None
    answers = pynvml.nvmlDeviceGetFieldValues(handle, ids)
    for kind, code, value in _FIELD.iter_unpack(answers):
        if code in besides:
            left_out = code
            continue
        if code != pynvml.NVML_SUCCESS:
            raise pynvml.NVMLError(code)
        if kind >= len(_VALUES):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        numbers.append(number(_VALUES[kind].unpack_from(value)[0]))
    if left_out is not None and not numbers:
        raise pynvml.NVMLError(left_out)
    return numbers


def pace(call: Callable[[], object]) -> int:
    """Return the number of samples between two such calls, depending on their CPU time.

    Some drivers answer in 10 us, others wait for the GPU and use 0.4 ms of CPU time. A call that
    fails now may be expensive when it works.
    """
    with contextlib.suppress(pynvml.NVMLError):
        call()  # the first call may initialise something
        began_s = thread_time()
        call()
        if thread_time() - began_s < _CHEAP_CALL_S:
            return 1
    return _RARELY


class Signal:
    """Some metrics that one call returns, and alternative calls.

    Args:
        metrics: names of the metrics.
        ways: the calls, the best one first.
        every: samples between two readings.
        at_ends: whether to read it also when a run begins or ends. Counters always are.
    """

    __slots__ = ("_at_ends", "_every", "_keeps", "is_rare", "latest", "metrics", "missing", "ways")

    def __init__(
        self, metrics: tuple[str, ...], *ways: Way, every: int = 1, at_ends: bool = False
    ) -> None:
        self.metrics = metrics
        self.ways = list(ways)
        self._every = every
        self.is_rare = every > 1
        """Whether some samples do not read it; see `is_due`."""
        self.missing: Missing | None = None
        """Why no call works; None while some calls are left."""
        counts = METRICS_BY_NAME[metrics[0]].kind == "counter"
        self._at_ends = at_ends or counts
        self._keeps = self.is_rare and not counts
        self.latest: Out = {}
        """Latest value of a rare gauge, used for the samples between two readings. Without it, the
        gauge would count as known for a tenth of the time."""

    def is_due(self, turn: int, position: int, *, ends: bool) -> bool:
        """Return whether to read it now.

        Args:
            turn: number of earlier samples of its GPU.
            position: the GPU's place among the job's GPUs. An expensive signal is read for one GPU
                at a time.
            ends: whether this is the first or the last sample, see `DeviceSource.read`.
        """
        if ends and self._at_ends:
            return True
        late = position if self._every >= _RARELY else 0
        return (turn - late) % self._every == 0

    def read(self, handle: Handle, out: Out) -> None:
        """Write the readings to `out`; raise NVMLError only for a lost GPU."""
        self._read(handle, out)
        if self._keeps:
            self.latest = {name: out[name] for name in self.metrics if name in out}

    def _read(self, handle: Handle, out: Out) -> None:
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
                del self.ways[0]  # it will never work, and each attempt costs time
                self.missing = missing
            else:
                return
        if missing is not None:
            out.update(dict.fromkeys(self.metrics, missing))


def plain_signals() -> list[Signal]:
    """Return the signals that GPUs and MIG instances have in common, without processes."""
    return [
        Signal(BUSY_METRICS, _utilization),
        Signal(("gpu_memory_used_bytes",), _memory, _memory_old),
        Signal(("gpu_sm_clock_mhz",), _core_clock),
        Signal(("gpu_memory_clock_mhz",), _memory_clock, every=_SLOWLY),
        # The newer call takes twice as long and returns the same.
        Signal(("gpu_temperature_c",), _temperature, _temperature_new, every=_SLOWLY),
        Signal(
            ("gpu_thermal_throttle_percent", "gpu_power_throttle_percent"), _throttle, _throttle_old
        ),
    ]


def power_signals() -> list[Signal]:
    """Return the signals that only a whole GPU has."""
    return [Signal(("gpu_power_w",), _power, _power_old), Signal(("gpu_energy_j",), _energy)]


def _utilization(handle: Handle, out: Out) -> None:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    out["gpu_busy_percent"] = number(rates.gpu)
    out["gpu_memory_busy_percent"] = number(rates.memory)


def _memory(handle: Handle, out: Out) -> None:
    # The second version leaves the driver's own reserve out of `used`.
    out["gpu_memory_used_bytes"] = number(
        pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2).used
    )


def _memory_old(handle: Handle, out: Out) -> None:
    out["gpu_memory_used_bytes"] = number(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def _power(handle: Handle, out: Out) -> None:
    # The instant power: on new GPUs the average takes milliseconds to read, and the energy counter
    # gives the mean anyway. A GH200 also has the power of the module.
    out["gpu_power_w"] = fields(handle, _POWER)[0] / 1000


def _power_old(handle: Handle, out: Out) -> None:
    out["gpu_power_w"] = number(pynvml.nvmlDeviceGetPowerUsage(handle)) / 1000


def _energy(handle: Handle, out: Out) -> None:
    out["gpu_energy_j"] = number(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000


def _core_clock(handle: Handle, out: Out) -> None:
    out["gpu_sm_clock_mhz"] = number(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def _memory_clock(handle: Handle, out: Out) -> None:
    clock_mhz = pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)
    out["gpu_memory_clock_mhz"] = number(clock_mhz)


def _temperature(handle: Handle, out: Out) -> None:
    celsius = pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)
    out["gpu_temperature_c"] = number(celsius)


def _temperature_new(handle: Handle, out: Out) -> None:
    celsius = pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)
    out["gpu_temperature_c"] = number(celsius)


def _throttle(handle: Handle, out: Out) -> None:
    _throttle_from(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle), out)


def _throttle_old(handle: Handle, out: Out) -> None:
    _throttle_from(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle), out)


def _throttle_from(bits: int, out: Out) -> None:
    number(bits)
    out["gpu_thermal_throttle_percent"] = 100 if bits & _THERMAL_BITS else 0
    out["gpu_power_throttle_percent"] = 100 if bits & _POWER_BITS else 0


class Traffic:
    """PCIe traffic of one GPU: the mean since the last reading, if the driver counts bytes.

    NVML's directions are the GPU's: it sends to the host.
    """

    def __init__(self, handle: Handle) -> None:
        self._before: tuple[float, list[int]] | None = None
        every = pace(lambda: fields(handle, _SENT, _RECEIVED))
        self.signal = Signal(PCIE_METRICS, self._counted, self._sampled, every=every)

    def _counted(self, handle: Handle, out: Out) -> None:
        sent_received = fields(handle, _SENT, _RECEIVED)
        now_s = monotonic()
        before, self._before = self._before, (now_s, sent_received)
        if before is None or before[0] == now_s:
            return
        sent, received = (
            (new - old) / (now_s - before[0])
            for new, old in zip(sent_received, before[1], strict=True)
        )
        # "Value can be wrapped" (nvml.h), but the width is not documented: then no figure.
        if sent >= 0 and received >= 0:
            out[_SEND], out[_RECEIVE] = sent, received

    def _sampled(self, handle: Handle, out: Out) -> None:
        # Each call blocks for about 20 ms while the driver counts. Then `every` is high.
        for name, direction in (
            (_SEND, pynvml.NVML_PCIE_UTIL_TX_BYTES),
            (_RECEIVE, pynvml.NVML_PCIE_UTIL_RX_BYTES),
        ):
            out[name] = number(pynvml.nvmlDeviceGetPcieThroughput(handle, direction)) * 1000
