"""The kind of container in which this process runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teho.devices.procfile import has_host_pids

__all__ = ["container_of"]

_VARIABLES = {
    "APPTAINER_CONTAINER": "Apptainer",
    "SINGULARITY_CONTAINER": "Singularity",
    "container": "",
}
_FILES = {"run/.containerenv": "Podman", ".dockerenv": "Docker"}


def container_of(environment: Mapping[str, str], root: Path) -> str:
    """Return the kind of container; `none` without signs of a container.

    Args:
        environment: some kinds set a variable.
        root: a folder that contains `proc` and `run`.
    """
    for variable, kind in _VARIABLES.items():
        if environment.get(variable):
            return kind or environment[variable]
    for path, kind in _FILES.items():
        if (root / path).exists():
            return kind
    has_host = has_host_pids(str(root))
    if has_host is None:
        return "not known"
    if has_host:
        return "none"
    return "of unknown kind: the container's process ids are not the host's process ids"
