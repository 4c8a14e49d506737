"""Caches in a home folder that all nodes share."""

from __future__ import annotations

from collections.abc import Mapping

from teho.devices.sources import VENDORS
from teho.doctor.outcome import Outcome, fine, symptom, unknown
from teho.doctor.snapshot import Folder, Snapshot
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "home-caches"
ABOUT = "caches in a home folder on a network file system"
DECISIVE = False

_DEFAULTS = {
    # What frameworks compile at each start: many small files, and locks.
    "TRITON_CACHE_DIR": "~/.triton",
    "CUDA_CACHE_PATH": "~/.nv",
    "MIOPEN_USER_DB_PATH": "~/.config/miopen",
    # What is downloaded, and fills a quota.
    "HF_HOME": "~/.cache/huggingface",
    "TORCH_HOME": "~/.cache/torch",
    "PIP_CACHE_DIR": "~/.cache/pip",
    "CONDA_PKGS_DIRS": "~/.conda/pkgs",
}
"""Variable -> where it points to where it is not set, by each tool's documents."""
_UNDER_CACHE = ("HF_HOME", "TORCH_HOME", "PIP_CACHE_DIR")
"""They follow XDG_CACHE_HOME."""


def check(snapshot: Snapshot) -> Outcome:
    """Name the caches that are in such a home, by their variables."""
    home = snapshot.folders.get("home")
    if not isinstance(home, Folder):
        return unknown(f"the home folder cannot be looked at: {home.detail if home else 'none'}")
    if not home.is_network:
        return fine(f"home is on a file system of this node, {home.file_system}")
    environment = snapshot.environment
    inside = [
        name
        for name in _DEFAULTS
        if _is_used(name, snapshot) and _place(name, environment).startswith(("~", f"{home.path}/"))
    ]
    if not inside:
        return fine("all of them lie elsewhere")
    return [
        symptom(
            ID,
            Severity.REMARK,
            f"The home folder is on {home.file_system}, and {len(inside)} caches in it: programs "
            "wait for its server, and they fill your quota.",
            "`teho launch` puts what is compiled on the node's own disk; what is downloaded goes "
            "to a larger file system with "
            "`export HF_HOME=… TORCH_HOME=… PIP_CACHE_DIR=…` in your `.bashrc`.",
            ("home", home.path, ""),
            ("in it", ", ".join(inside), ""),
        )
    ]


def _is_used(name: str, snapshot: Snapshot) -> bool:
    vendors = {vendor.name for vendor in VENDORS.values() if name in vendor.cache_variables}
    return not vendors or any(device.vendor in vendors for device in snapshot.gpus)


def _place(name: str, environment: Mapping[str, str]) -> str:
    """Return where a cache lies: a path, or one that begins with `~`."""
    if environment.get(name):
        return environment[name]
    cache = environment.get("XDG_CACHE_HOME", "")
    if name in _UNDER_CACHE and cache:
        return f"{cache}/{_DEFAULTS[name].rpartition('/')[2]}"
    return _DEFAULTS[name]
