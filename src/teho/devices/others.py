"""What else is known of a vendor's GPUs here: those that are not the job's, and versions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path

from teho.devices.procfile import read_text
from teho.model.device import Device

__all__ = ["other_devices", "versions_of"]


def other_devices(vendor: str, root: Path, known: Sequence[Device]) -> tuple[Device, ...]:
    """Return the vendor's GPUs that are here and not among those known.

    Args:
        vendor: such as `nvidia`; of one that is not known here there are none.
        root: a folder that holds `sys`.
        known: the job's own.
    """
    everything = _EVERYTHING.get(vendor)
    found = everything(root) if everything else []
    ids = {device.id for device in known}
    return tuple(device for device in found if device.id not in ids)


def _all_nvidia(root: Path) -> list[Device]:
    import pynvml

    from teho.devices.nvidia_devices import find_gpus

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        return list(find_gpus(root).handles)
    except pynvml.NVMLError:
        return []
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _all_amd(root: Path) -> list[Device]:
    from teho.devices.amd_topology import amd_cards, find_amd_gpus

    top = str(root).rstrip("/")
    return [gpu.device for gpu in find_amd_gpus(top, amd_cards(top))[0]]


def versions_of(vendor: str, root: Path) -> dict[str, str]:
    """Return the versions of a vendor's driver and libraries, as far as they tell."""
    versions = _VERSIONS.get(vendor)
    return {name: text for name, text in versions(root) if text} if versions else {}


def _nvidia_versions(root: Path) -> Iterable[tuple[str, str]]:
    import pynvml

    # The kernel's word: it is there where the library is not, or is of another version.
    yield "NVIDIA driver", read_text(root / "sys/module/nvidia/version")
    yield "nvidia-ml-py", metadata.version("nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return
    with contextlib.suppress(pynvml.NVMLError):
        yield "driver by NVML", pynvml.nvmlSystemGetDriverVersion()
    with contextlib.suppress(pynvml.NVMLError):
        yield "NVML", pynvml.nvmlSystemGetNVMLVersion()
    with contextlib.suppress(pynvml.NVMLError):
        number = pynvml.nvmlSystemGetCudaDriverVersion()
        yield "CUDA of the driver", f"{number // 1000}.{number % 1000 // 10}"
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlShutdown()


def _amd_versions(root: Path) -> Iterable[tuple[str, str]]:
    # A driver that came with the kernel has no version of its own.
    yield "amdgpu", read_text(root / "sys/module/amdgpu/version")
    yield "ROCm", read_text(root / "opt/rocm/.info/version")


_EVERYTHING: dict[str, Callable[[Path], list[Device]]] = {
    "nvidia": _all_nvidia,
    "amd": _all_amd,
}
_VERSIONS: dict[str, Callable[[Path], Iterable[tuple[str, str]]]] = {
    "nvidia": _nvidia_versions,
    "amd": _amd_versions,
}
