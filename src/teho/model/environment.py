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
    """Words in front of the program's command, for example to run the program in a container."""
    versions: tuple[str, ...] = ()
    """Versions of the module, as they are written after the module's name and a slash. The default
    is first."""
    old_versions: tuple[str, ...] = ()
    """Versions that the site still has, but no longer supports."""
    old_lines: tuple[str, ...] = ()
    """Lines that make the old versions visible."""
    horovod: tuple[str, ...] = ()
    """Versions that contain Horovod. The newest version is first."""
    source: str
    notes: str = ""


class Environments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How users make their own environments."""

    kinds: tuple[EnvironmentKind, ...]
    """Kinds of environment that the site offers. The recommended kind is first. The site
    discourages kinds that are not in this list."""
    place: str = "$HOME"
    """Directory for environments."""
    in_job: str = ""
    """Directory in which each job makes its virtual environment, such as `$SLURM_TMPDIR`. Empty:
    the environment is made only once, in `place`."""
    python: tuple[str, ...] = ()
    """Lines that load the Python for virtual environments."""
    wheelhouse: bool = False
    """Whether the site has its own Python wheels, and `pip --no-index` uses only these wheels."""
    conda: tuple[str, ...] = ()
    """Lines that load conda."""
    activate: str = ""
    """Command with which a job activates the conda environment `{name}`. Empty: Teho uses conda's
    own hook."""
    container: tuple[str, ...] = ()
    """Lines that load the program that makes containers. Empty: this program is always
    available."""
    maker: Literal["apptainer", "singularity", "tykky", ""] = ""
    """Program that makes containers."""
    source: str
    notes: str = ""


class Container(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Environment variables for one generation of the site's containers."""

    generation: str
    """Name of the generation. The first generation in the file is the current generation."""
    variables: dict[str, str]
    """Environment variables. Teho replaces `{user}` by the user's name, and `{node}` by the number
    of the node."""
    directories: tuple[str, ...] = ()
    """Directories that `teho launch` creates on each node before the program starts."""
    source: str
    notes: str = ""
