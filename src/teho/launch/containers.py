"""Bring the variables and folders of a launch into a container that the command starts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["container_variables", "is_container", "is_inside"]

_COMMANDS = frozenset({"apptainer", "singularity"})
_PREFIXES = ("APPTAINER", "SINGULARITY")
_CLEAN = frozenset({"-e", "--cleanenv", "-C", "--containall"})
_CONTAINED = frozenset({"-c", "--contain", "-C", "--containall"})
_BOUND_ANYWAY = ("/tmp/", "/var/tmp/")  # noqa: S108 - Apptainer mounts them; Teho writes no file there


def is_container(command: Sequence[str]) -> bool:
    """Return whether a command is Apptainer or Singularity."""
    return bool(command) and command[0].rpartition("/")[2] in _COMMANDS


def is_inside(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a container of Apptainer or Singularity."""
    return any(environment.get(f"{prefix}_CONTAINER") for prefix in _PREFIXES)


def container_variables(
    command: Sequence[str],
    variables: Mapping[str, str],
    directories: Sequence[str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return the variables to set outside the container.

    Apptainer passes its whole environment on, unless an option forbids it: then variables need a
    prefix. Folders need a bind mount. Apptainer prefers its own name of a variable, and older
    Singularity knows only its own name. So both names get the same value.

    Args:
        command: the command of the container.
        variables: variables that this launch sets.
        directories: folders that this launch creates.
        environment: of this process.
    """
    found: dict[str, str] = {}
    if _is_set(command, environment, _CLEAN, ("CLEANENV", "CONTAINALL")):
        for prefix in _PREFIXES:
            found |= {f"{prefix}ENV_{name}": value for name, value in variables.items()}
    contained = _is_set(command, environment, _CONTAINED, ("CONTAIN", "CONTAINALL"))
    needed = [one for one in directories if contained or not one.startswith(_BOUND_ANYWAY)]
    if needed:
        names = [f"{prefix}_BIND" for prefix in _PREFIXES]
        there = next(filter(None, map(environment.get, names)), "")
        found |= dict.fromkeys(names, ",".join(filter(None, (there, *needed))))
    return found


def _is_set(
    command: Sequence[str],
    environment: Mapping[str, str],
    options: frozenset[str],
    names: tuple[str, ...],
) -> bool:
    """Return whether one of these options is in the command or in the environment."""
    values = (environment.get(f"{prefix}_{name}", "") for prefix in _PREFIXES for name in names)
    return not options.isdisjoint(command) or any(
        value not in {"", "0", "false"} for value in values
    )
