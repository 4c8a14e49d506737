"""The software of a cluster: modules, environments and containers, as its file has them."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Container", "EnvironmentKind", "Environments", "Software"]

EnvironmentKind = Literal["module", "conda", "venv", "container"]
"""The site's module, or one of the kinds of environment that a user makes."""


class Software(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job loads a framework."""

    framework: str
    """`pytorch`, `tensorflow`, `jax`, or `any`."""
    kind: EnvironmentKind = "module"
    lines: tuple[str, ...]
    """Lines of the job script."""
    run_prefix: str = ""
    """Words before the program's command, such as a container's exec."""
    versions: tuple[str, ...] = ()
    """Versions of the module as they follow its name and a slash, the default first."""
    old_versions: tuple[str, ...] = ()
    """Versions that the site still has, but no longer supports."""
    old_lines: tuple[str, ...] = ()
    """Lines that make the old versions visible."""
    horovod: tuple[str, ...] = ()
    """Versions that contain Horovod, the newest first."""
    source: str
    notes: str = ""


class Environments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How users make their own environments."""

    kinds: tuple[EnvironmentKind, ...]
    """Kinds that the site offers, the recommended one first. It discourages the others."""
    place: str = "$HOME"
    """Directory for environments."""
    in_job: str = ""
    """Directory, such as `$SLURM_TMPDIR`, in which each job makes a virtual environment again;
    empty: the environment is made once, in `place`."""
    python: tuple[str, ...] = ()
    """Lines that load the Python for virtual environments."""
    wheelhouse: bool = False
    """Whether pip has the site's own wheels and `--no-index` uses only them."""
    conda: tuple[str, ...] = ()
    """Lines that load conda."""
    activate: str = ""
    """How a job activates conda's environment `{name}`; empty: with conda's own hook."""
    container: tuple[str, ...] = ()
    """Lines that load the program that makes containers; none: it needs no loading."""
    maker: Literal["apptainer", "singularity", "tykky", ""] = ""
    """Program that makes containers."""
    source: str
    notes: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Variables for communication and caches, for one generation of containers."""

    generation: str
    """Name of the generation. The first one in the file is the current one."""
    variables: dict[str, str]
    """`{user}` and `{node}` are replaced by the user's name and the node's number."""
    directories: tuple[str, ...] = ()
    """Directories to create first, on each node."""
    source: str
    notes: str = ""
