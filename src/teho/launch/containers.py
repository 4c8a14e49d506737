"""What brings a launch's variables and folders into a container that the command starts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["container_variables", "is_container", "is_inside"]

_COMMANDS = frozenset({"apptainer", "singularity"})
_PREFIXES = ("APPTAINER", "SINGULARITY")
_CLEAN = frozenset({"-e", "--cleanenv", "-C", "--containall"})
_APART = frozenset({"-c", "--contain", "-C", "--containall"})
_BOUND_ANYWAY = ("/tmp/", "/var/tmp/")  # noqa: S108 - what Apptainer mounts; nothing is written there


def is_container(command: Sequence[str]) -> bool:
    """Return whether a command is Apptainer or Singularity."""
    return bool(command) and command[0].rpartition("/")[2] in _COMMANDS


def is_inside(environment: Mapping[str, str]) -> bool:
    """Return whether this process runs in a container of theirs."""
    return any(environment.get(f"{prefix}_CONTAINER") for prefix in _PREFIXES)


def container_variables(
    command: Sequence[str],
    variables: Mapping[str, str],
    directories: Sequence[str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Return what is to be set outside, so that variables and folders are there inside.

    Apptainer hands its whole environment on, but where it is told not to: then variables need
    its prefix. Folders need a bind mount. Apptainer heeds one of two names that differ, its own,
    and older Singularity knows its own alone: both get the same value.

    Args:
        command: that of the container.
        variables: what this launch sets.
        directories: folders that it creates.
        environment: of this process.
    """
    found: dict[str, str] = {}
    if _is_told(command, environment, _CLEAN, ("CLEANENV", "CONTAINALL")):
        for prefix in _PREFIXES:
            found |= {f"{prefix}ENV_{name}": value for name, value in variables.items()}
    apart = _is_told(command, environment, _APART, ("CONTAIN", "CONTAINALL"))
    needed = [one for one in directories if apart or not one.startswith(_BOUND_ANYWAY)]
    if needed:
        names = [f"{prefix}_BIND" for prefix in _PREFIXES]
        there = next(filter(None, map(environment.get, names)), "")
        found |= dict.fromkeys(names, ",".join(filter(None, (there, *needed))))
    return found


def _is_told(
    command: Sequence[str],
    environment: Mapping[str, str],
    options: frozenset[str],
    names: tuple[str, ...],
) -> bool:
    """Return whether one of these options is among the words, or in the environment."""
    told = (environment.get(f"{prefix}_{name}", "") for prefix in _PREFIXES for name in names)
    return not options.isdisjoint(command) or any(value not in {"", "0", "false"} for value in told)
