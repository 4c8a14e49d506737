"""GPUs that NVIDIA's driver shows on this node, and the meaning of NVML's errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pynvml

from teho.devices.procfile import optional_number
from teho.model.device import Device, DeviceFact
from teho.model.missing import Missing, Reason

__all__ = [
    "Found",
    "Handle",
    "Instance",
    "ask",
    "cuda_version",
    "find_gpus",
    "missing_for",
    "number",
    "nvml",
]

Handle = Any
"""NVML's handle of a GPU or MIG instance."""

_NOT_AVAILABLE = frozenset({2**32 - 1, 2**64 - 1})
"""NVML_VALUE_NOT_AVAILABLE of both widths: a successful call without a value."""

_NO_ANSWER = Missing(Reason.FAILED, "the driver gives an empty answer")
_COMPUTE_MODES = {
    pynvml.NVML_COMPUTEMODE_DEFAULT: "default",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_THREAD: "exclusive thread",
    pynvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited",
    pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: "exclusive process",
}
_TOO_OLD = Missing(Reason.UNSUPPORTED, "the driver is too old to report this metric")
_ERRORS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: Missing(
        Reason.UNSUPPORTED, "this GPU or its driver does not report this metric"
    ),
    # The question is the same for all devices, so the device does not support it: mostly MIG.
    pynvml.NVML_ERROR_INVALID_ARGUMENT: Missing(
        Reason.UNSUPPORTED, "this kind of device does not report this metric"
    ),
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: _TOO_OLD,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: _TOO_OLD,
    pynvml.NVML_ERROR_DEPRECATED: Missing(
        Reason.UNSUPPORTED, "the driver no longer reports this metric"
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: Missing(
        Reason.FORBIDDEN, "the driver does not report this metric to this user"
    ),
    pynvml.NVML_ERROR_NO_DATA: Missing(
        Reason.FAILED, "the driver reports 'not available' instead of a value"
    ),
    pynvml.NVML_ERROR_GPU_IS_LOST: Missing(
        Reason.FAILED, "the GPU is lost: it no longer answers on its bus"
    ),
}
"""Meaning of NVML's errors for a reading. Any other error is a failure, in NVML's words."""


@contextlib.contextmanager
def nvml() -> Iterator[None]:
    """Open NVML for a block.

    Raises:
        pynvml.NVMLError: it cannot be opened.
    """
    pynvml.nvmlInit()
    try:
        yield
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def missing_for(error: int) -> Missing:
    """Return the value of a reading that failed with this NVML error."""
    if error in _ERRORS:
        return _ERRORS[error]
    return Missing(Reason.FAILED, f"NVML says: {pynvml.NVMLError(error)}")


def number(value: int) -> int:
    """Return the value; raise NVMLError if it is NVML's "not available"."""
    if value in _NOT_AVAILABLE:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_DATA)
    return value


def ask(function: Callable[..., Any], *arguments: Any, otherwise: Any = None) -> Any:
    """Call NVML; return `otherwise` if the call fails."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return otherwise


def _fact(function: Callable[..., str], *arguments: Any) -> DeviceFact:
    """Return a fact as text, or why it is missing."""
    try:
        return function(*arguments) or _NO_ANSWER
    except pynvml.NVMLError as error:
        return missing_for(error.value)


def _driver_version() -> str:
    return str(pynvml.nvmlSystemGetDriverVersion())


def cuda_version() -> str:
    """Return the newest CUDA version that the driver supports, such as `12.4`; empty if none.

    Raises:
        pynvml.NVMLError: the driver does not report it.
    """
    number: int = pynvml.nvmlSystemGetCudaDriverVersion()
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _platform() -> str:
    version = cuda_version()
    return f"CUDA {version}" if version else ""


def _compute_mode(handle: Handle) -> str:
    number: int = pynvml.nvmlDeviceGetComputeMode(handle)
    return _COMPUTE_MODES.get(number, f"mode {number}")


class Instance(NamedTuple):
    """The GPU of a MIG instance, and its number there."""

    gpu: Handle
    gpu_index: int
    gpu_instance: int | None
    """NVML's number of the GPU instance; None if the driver does not report it."""


class Found(NamedTuple):
    """GPUs and MIG instances that the driver shows to this user."""

    handles: dict[Device, Handle]
    """GPUs in NVML's order, each followed by its MIG instances."""
    legacy_names: dict[str, str]
    """`MIG-GPU-<uuid>/<gi>/<ci>` -> id of that instance."""
    instances: dict[str, Instance]
    """MIG instances by device id."""
    notes: tuple[str, ...]


def find_gpus(root: Path) -> Found:
    """List the GPUs and MIG instances that this user may open.

    Args:
        root: a folder that contains `sys`.

    Raises:
        pynvml.NVMLError: the driver does not report the number of its GPUs.
    """
    found = Found({}, {}, {}, ())
    driver, platform = _fact(_driver_version), _fact(_platform)
    notes: list[str] = []
    closed: list[int] = []
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
                closed.append(index)
            else:
                notes.append(f"GPU {index} could not be opened: {error}")
            continue
        gpu = _describe(handle, index, root, driver, platform)
        found.handles[gpu] = handle
        if ask(pynvml.nvmlDeviceGetMigMode, handle, otherwise=(0, 0))[0]:
            _add_instances(found, gpu, handle)
    if closed:
        numbers = ", ".join(map(str, closed))
        gpus = f"GPU {numbers}" if len(closed) == 1 else f"GPUs {numbers}"
        notes.append(f"Teho does not record {gpus}, because this user has no permission")
    return found._replace(notes=tuple(notes))


def _add_instances(found: Found, gpu: Device, handle: Handle) -> None:
    for position in range(ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle, otherwise=0)):
        part = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, position)
        if part is None:
            continue  # positions may be empty
        device = Device(
            id=ask(pynvml.nvmlDeviceGetUUID, part) or f"{gpu.id}/{position}",
            index=position,
            name=ask(pynvml.nvmlDeviceGetName, part) or f"{gpu.name} MIG",
            vendor="nvidia",
            memory_bytes=_memory_bytes(part),
            pci_bus_id=gpu.pci_bus_id,
            numa_node=gpu.numa_node,
            parent_id=gpu.id,
            architecture=gpu.architecture,
            driver=gpu.driver,
            platform=gpu.platform,
            compute_mode=gpu.compute_mode,
        )
        found.handles[device] = part
        gpu_instance = ask(pynvml.nvmlDeviceGetGpuInstanceId, part)
        compute_instance = ask(pynvml.nvmlDeviceGetComputeInstanceId, part)
        found.instances[device.id] = Instance(handle, gpu.index, gpu_instance)
        found.legacy_names[f"MIG-{gpu.id}/{gpu_instance}/{compute_instance}"] = device.id


def _describe(
    handle: Handle, index: int, root: Path, driver: DeviceFact, platform: DeviceFact
) -> Device:
    pci = ask(pynvml.nvmlDeviceGetPciInfo, handle)
    # sysfs writes the domain with four digits, NVML with eight.
    bus_id = f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}.0" if pci else None
    limit_mw = ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    default_mw = ask(pynvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)
    capability = ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle, otherwise=())
    name = ask(pynvml.nvmlDeviceGetName, handle) or "NVIDIA GPU"
    return Device(
        id=ask(pynvml.nvmlDeviceGetUUID, handle) or bus_id or f"nvidia-{index}",
        index=index,
        name=name,
        vendor="nvidia",
        memory_bytes=_memory_bytes(handle),
        pci_bus_id=bus_id,
        # If the kernel does not know it, it writes -1, which is not read as a number.
        numa_node=optional_number(f"{root}/sys/bus/pci/devices/{bus_id}/numa_node"),
        power_limit_w=None if limit_mw is None else limit_mw / 1000,
        power_default_w=None if default_mw is None else default_mw / 1000,
        architecture=".".join(map(str, capability)),
        # The counter of a GH200 includes its CPU: ml-energy/zeus, pull request 172.
        energy_of="module" if "GH200" in name else "device",
        driver=driver,
        platform=platform,
        compute_mode=_fact(_compute_mode, handle),
    )


def _memory_bytes(handle: Handle) -> int | None:
    memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    return None if memory is None else int(memory.total)
