"""All NVIDIA GPUs of a node, also those of other jobs, and the versions of the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pynvml

from teho.devices.nvidia.devices import find_gpus
from teho.devices.procfile import read_text
from teho.model.device import Device

__all__ = ["all_gpus", "versions"]


def all_gpus(root: Path) -> list[Device]:
    """Return every GPU and MIG instance that the driver shows; none if it does not answer."""
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


def versions(root: Path) -> Iterable[tuple[str, str]]:
    """Yield the versions of the driver, of its library, and of the package that calls it."""
    # The kernel reports it also if the library is missing, or is of another version.
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
