"""Are there caches in a home folder on a network file system?"""

from __future__ import annotations

from teho.devices.sources import VENDORS
from teho.doctor.outcome import Outcome, fine, remark, unknown
from teho.doctor.snapshot import Folder, Snapshot
from teho.units import counted

__all__ = ["ABOUT", "check"]

ABOUT = "caches in a home folder on a network file system"

_DEFAULTS = {
    # What frameworks compile at each start: many small files, and locks.
    "TRITON_CACHE_DIR": "~/.triton",
    "CUDA_CACHE_PATH": "~/.nv",
    "MIOPEN_USER_DB_PATH": "~/.config/miopen",
    # Downloads, which fill a quota.
    "HF_HOME": "~/.cache/huggingface",
    "TORCH_HOME": "~/.cache/torch",
    "PIP_CACHE_DIR": "~/.cache/pip",
    "CONDA_PKGS_DIRS": "~/.conda/pkgs",
}
"""Variable -> the folder that is used if the variable is not set, by each tool's documentation."""
_UNDER_CACHE = ("HF_HOME", "TORCH_HOME", "PIP_CACHE_DIR")
"""They follow XDG_CACHE_HOME."""


def check(snapshot: Snapshot) -> Outcome:
    """Name the caches in such a home folder by their variables."""
    home = snapshot.folders.get("home")
    if not isinstance(home, Folder):
        why = home.detail if home else "HOME is not set"
        return unknown(f"the home folder cannot be checked: {why}")
    if not home.is_network:
        return fine(f"the home folder is on a file system of this node, {home.file_system}")
    inside = [
        name
        for name in _DEFAULTS
        if _is_used(name, snapshot) and _path(name, snapshot).startswith(("~", f"{home.path}/"))
    ]
    if not inside:
        return fine("all caches are on other file systems")
    return remark(
        f"The home folder contains {counted(len(inside), 'cache')}, and is on a network file "
        f"system ({home.file_system}). So these caches are slow, and downloads fill your quota.",
        "Start programs with `teho launch`, which puts the caches of compiled code on the node's "
        "disk. Put downloads on a larger file system: "
        "`export HF_HOME=… TORCH_HOME=… PIP_CACHE_DIR=…` in your `.bashrc`.",
        ("home folder", home.path, ""),
        ("caches in the home folder", ", ".join(inside), ""),
    )


def _is_used(name: str, snapshot: Snapshot) -> bool:
    vendors = {vendor.name for vendor in VENDORS.values() if name in vendor.cache_variables}
    return not vendors or any(device.vendor in vendors for device in snapshot.gpus)


def _path(name: str, snapshot: Snapshot) -> str:
    """Return where a cache is: a path that may begin with `~`."""
    if found := snapshot.environment.get(name):
        return found
    cache = snapshot.environment.get("XDG_CACHE_HOME", "")
    if name in _UNDER_CACHE and cache:
        return f"{cache}/{_DEFAULTS[name].rpartition('/')[2]}"
    return _DEFAULTS[name]
