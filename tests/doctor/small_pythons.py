"""Real Pythons with little in them: virtual environments, and folders as conda makes them."""

from __future__ import annotations

import _ctypes
import json
import shutil
import sys
import venv
from pathlib import Path

_TORCH = """\
import types, warnings

__version__ = "2.5.1+cu124"
version = types.SimpleNamespace(cuda="12.4", hip=None)


def _available():
    if {warning!r}:
        warnings.warn({warning!r})
    return {gpus} > 0


def _current():
    raise RuntimeError("No CUDA GPUs are available")


cuda = types.SimpleNamespace(
    is_available=_available,
    device_count=lambda: {gpus},
    current_device=_current,
    get_arch_list=lambda: ["sm_80", "sm_90", "compute_90"],
)
distributed = types.SimpleNamespace(is_available=lambda: True, is_nccl_available=lambda: True)
"""


def small_python(folder: Path, *packages: str) -> Path:
    """Make a virtual environment that has the metadata of some packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    for package in packages:
        name, _, version = package.rpartition("-")
        metadata = site(folder) / f"{package}.dist-info"
        metadata.mkdir()
        plain = name.replace("_", "-")
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {plain}\nVersion: {version}\n"
        )
    return folder / "bin" / "python"


def conda_prefix(folder: Path, *packages: str) -> Path:
    """Make what is seen of a conda environment: a Python, and conda's record of each package."""
    python = small_python(folder)
    records = folder / "conda-meta"
    records.mkdir()
    for package in packages:
        name, version, build = package.rsplit("-", 2)
        record = {"name": name, "version": version, "build": build, "channel": "conda-forge"}
        (records / f"{package}.json").write_text(json.dumps(record))
    return python


def fake_torch(folder: Path, *, gpus: int, warning: str = "") -> None:
    """Put a module there that answers like PyTorch for CUDA on a node with these GPUs."""
    package = site(folder) / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(_TORCH.format(gpus=gpus, warning=warning))


def fake_core(folder: Path, *, gpus: int) -> None:
    """Give that PyTorch the library that its own modules ask, and files of its own in front."""
    package = site(folder) / "torch"
    (package / "version.py").write_text('__version__ = "2.5.1+cu124"; cuda = "12.4"; hip = None\n')
    (package / "_C.py").write_text(
        f"_cuda_getDeviceCount = lambda: {gpus}\n"
        "_cuda_getArchFlags = lambda: 'sm_80 sm_90'\n"
        "_c10d_init = _nccl_version = lambda: None\n"
    )
    (package / "lib").mkdir()
    # A shared library, of which only the loading matters.
    shutil.copy(_ctypes.__file__, package / "lib" / "libtorch_global_deps.so")


def site(folder: Path) -> Path:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return folder / "lib" / version / "site-packages"
