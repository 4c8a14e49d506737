"""NVIDIA's library NVML, opened for the GPUs of the job."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pynvml

from teho.devices.nvidia.devices import Found, find_gpus, nvml
from teho.devices.nvidia.visible import visible_cuda
from teho.errors import DeviceError
from teho.model.device import Device

__all__ = ["NvidiaDriver"]

_NO_DRIVER: dict[int, tuple[str, str]] = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        "no NVIDIA driver library (libnvidia-ml.so.1) on this node",
        "if the node has NVIDIA GPUs, start the container with GPU access (apptainer: `--nv`)",
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        "NVIDIA's library is on this node, but its driver is not loaded",
        "request a GPU node; if this is a GPU node, report the problem to its administrator",
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        "the NVIDIA driver refuses this user (no permission)",
        "check the permissions of /dev/nvidiactl: `ls -l /dev/nvidia*`",
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        "NVIDIA's library and its driver have different versions",
        (
            "the node needs a restart, because its driver was updated: report this to the "
            "administrator of the node"
        ),
    ),
}


class NvidiaDriver:
    """The opened driver.

    Args:
        environment: the program's environment, with `CUDA_VISIBLE_DEVICES`.
        root: a folder that contains `sys`.

    Attributes:
        found: all GPUs that the driver shows to this user.
        devices: the GPUs and MIG instances of the job.
        notes: sentences for the report.

    Raises:
        DeviceError: no driver, no permission to use it, or no GPU of the job; the text says which.
    """

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        try:
            with contextlib.ExitStack() as opened:
                opened.enter_context(nvml())
                self.found = find_gpus(root)
                self.devices, notes = visible_cuda(
                    environment, list(self.found.handles), self.found.legacy_names
                )
                self.notes = (*self.found.notes, *notes, *_cautions(self.devices))
                if not self.devices:
                    raise _no_gpu(self.found, environment, self.notes)
                self._opened = opened.pop_all()
        except pynvml.NVMLError as error:
            raise _no_driver(error) from None

    def close(self) -> None:
        """Close the driver; can be called twice."""
        self._opened.close()


def _no_driver(error: pynvml.NVMLError) -> DeviceError:
    found, next_step = _NO_DRIVER.get(
        error.value, (f"the NVIDIA driver does not work: {error}", "look at `nvidia-smi`")
    )
    return DeviceError(found, next_step=next_step)


def _no_gpu(found: Found, environment: Mapping[str, str], notes: Sequence[str]) -> DeviceError:
    why = f" ({'; '.join(notes)})" if notes else ""
    if not found.handles:
        text = "the NVIDIA driver shows no GPU to this user"
        return DeviceError(text + why, next_step="look at `nvidia-smi -L`")
    text = f"none of the {len(found.handles)} NVIDIA GPUs here belongs to this job"
    variable = environment.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        text += f": CUDA_VISIBLE_DEVICES is {variable!r}"
    return DeviceError(
        text + why, next_step="request a GPU from the scheduler, or correct CUDA_VISIBLE_DEVICES"
    )


def _cautions(devices: Sequence[Device]) -> list[str]:
    """Return notes about models with special figures."""
    if any(device.energy_of == "module" for device in devices):
        return ["the energy counter of a GH200 measures the whole module, including its CPU"]
    return []
