"""Whether this process runs inside a container, and of which kind."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["container_of"]

_VARIABLES = {
    "APPTAINER_CONTAINER": "Apptainer",
    "SINGULARITY_CONTAINER": "Singularity",
    "container": "",
}
_FILES = {"run/.containerenv": "Podman", ".dockerenv": "Docker"}
# The kernel's PROC_PID_INIT_INO (include/linux/proc_ns.h): the first namespace of process ids.
_HOST_PIDS = "pid:[4026531836]"


def container_of(environment: Mapping[str, str], root: Path) -> str:
    """Return the kind of container, `none` where there is no sign of one.

    Args:
        environment: where the kinds that set a variable are known by it.
        root: a folder that holds `proc` and `run`.
    """
    for variable, kind in _VARIABLES.items():
        if environment.get(variable):
            return kind or environment[variable]
    for path, kind in _FILES.items():
        if (root / path).exists():
            return kind
    try:
        namespace = str((root / "proc/self/ns/pid").readlink())
    except OSError:
        return "not known"
    return "none" if namespace == _HOST_PIDS else "of unknown kind: process ids are not the host's"
