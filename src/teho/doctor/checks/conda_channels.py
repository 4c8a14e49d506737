"""Does conda look into `conda-forge` before its own channel `defaults`?"""

from __future__ import annotations

from shlex import quote

from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown, warning
from teho.doctor.snapshot import Conda, CondaFile, Snapshot
from teho.model.missing import Missing

__all__ = ["ABOUT", "check"]

ABOUT = "the order of conda's channels"

_FORGE, _DEFAULTS = "conda-forge", "defaults"


def check(snapshot: Snapshot) -> Outcome:
    """Compare the places of `conda-forge` and `defaults` in conda's configuration.

    Conda puts the lists of all its files together, the list of the strongest file first. It then
    prefers the packages of the first channel.
    """
    conda = snapshot.conda
    if isinstance(conda, Missing):
        return unknown(f"the configuration of conda cannot be read: {conda.detail}")
    if conda is None or not (conda.command or conda.files):
        return not_applicable("neither conda nor a configuration of conda was found")
    if any(file.redefines_defaults for file in conda.files):
        return not_applicable("`default_channels` is set, so `defaults` can mean any channel")
    named = snapshot.environment.get("CONDA_CHANNELS", "")
    variable = tuple(word.strip() for word in named.split(",") if word.strip())
    sources = (CondaFile(path="CONDA_CHANNELS", channels=variable), *conda.files)
    channels = [channel for source in sources for channel in source.channels]
    for source in sources:
        if source.why:
            return unknown(f"{source.path} cannot be read: {source.why}")
        for channel in map(_name, source.channels):
            if channel == _FORGE:
                return fine(f"{', '.join(channels)} (set by {source.path})")
            if channel == _DEFAULTS:
                return _found(snapshot, conda, source, channels)
    if not channels:
        return not_applicable("the configuration of conda names no channel")
    return fine(f"{', '.join(channels)}, without `defaults`")


def _name(channel: str) -> str:
    """Return a channel's name without its address."""
    bare = channel.rstrip("/")
    return _DEFAULTS if bare.endswith("pkgs/main") else bare.rpartition("/")[2]


def _found(snapshot: Snapshot, conda: Conda, source: CondaFile, channels: list[str]) -> Outcome:
    action = _commands(snapshot, conda, source)
    evidence = ("channels", ", ".join(channels), ""), ("set by", source.path, "")
    if _FORGE in map(_name, channels):
        return warning(
            "Conda prefers the packages of `defaults` to the packages of `conda-forge`, because "
            f"{source.path} lists `defaults` first.",
            action,
            *evidence,
        )
    return remark(
        f"Conda installs from `defaults`, and does not use `conda-forge`, because {source.path} "
        "does not list `conda-forge`.",
        action,
        *evidence,
    )


def _commands(snapshot: Snapshot, conda: Conda, source: CondaFile) -> str:
    """Return the commands that put `conda-forge` first, as the GPU guide of ARC4 advises."""
    if source not in conda.files:
        return "List `conda-forge` first: `export CONDA_CHANNELS=conda-forge`."
    environment = snapshot.environment
    # Without --file, conda writes this file.
    own = environment.get("CONDARC") or f"{environment.get('HOME', '')}/.condarc"
    where = "" if own == source.path else f" --file {quote(source.path)}"
    strict = "`conda config --set channel_priority strict`"
    if not source.is_writable:
        return (
            f"Run `conda config --add channels conda-forge` and {strict}. These two commands "
            f"change your own file {own}, because {source.path} is read-only for you."
        )
    return (
        f"Run `conda config{where} --add channels conda-forge`, "
        f"`conda config{where} --remove channels defaults` and {strict}. If you use Anaconda or "
        "Miniconda, leave out the second command, because they need `defaults`."
    )
