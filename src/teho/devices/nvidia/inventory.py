"""All NVIDIA GPUs of a node, including other jobs' GPUs, and the versions of the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pynvml

from teho.devices.nvidia.devices import ask, cuda_version, find_gpus, nvml
from teho.devices.procfile import read_text
from teho.model.device import Device

__all__ = ["all_gpus", "versions"]


def all_gpus(root: Path) -> list[Device]:
    """Return every GPU and MIG instance that the driver shows; none if it does not answer."""
    try:
        with nvml():
            return list(find_gpus(root).handles)
    except pynvml.NVMLError:
        return []


def versions(root: Path) -> Iterable[tuple[str, str]]:
    """Yield the versions of the driver, of its library, and of the Python package for it."""
    # The kernel reports this even if the library is missing, or is of another version.
    yield "NVIDIA driver", read_text(root / "sys/module/nvidia/version")
    yield "nvidia-ml-py", metadata.version("nvidia-ml-py")
    with contextlib.suppress(pynvml.NVMLError), nvml():
        yield "driver by NVML", ask(pynvml.nvmlSystemGetDriverVersion, otherwise="")
        yield "NVML", ask(pynvml.nvmlSystemGetNVMLVersion, otherwise="")
        yield "CUDA of the driver", ask(cuda_version, otherwise="")
