"""Reads which channels the configuration files of conda name.

Teho has no YAML library among its dependencies, and needs the list `channels` and whether there is
a list `default_channels`. So this reads only these two keys. If it does not understand the list,
it says so.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from teho.doctor.snapshot import Conda, CondaFile
from teho.patterns import lazy_pattern

__all__ = ["read_channels", "read_conda"]

_COMMANDS = ("conda", "mamba", "micromamba")
_KEY = lazy_pattern(r"""(["']?)(channels?|default_channels)\1[ ]*:(?:[ ]+(?P<value>.*))?$""")
_ITEM = lazy_pattern(r"(?P<indent>[ ]*)-[ ]+(?P<value>.*)$")
_COMMENT = lazy_pattern(r"(?:^|\s)#.*$")
_QUOTED = lazy_pattern(r"""(["'])(?P<text>[^"'\\]+)\1$""")
_PLAIN = lazy_pattern(r"[A-Za-z0-9_./~$][^\s,\[\]{}\"']*$")
_LONGEST_BYTES = 1 << 20


def read_conda(environment: Mapping[str, str], root: Path = Path("/")) -> Conda:
    """Return the command of conda and its configuration files, with the strongest file first.

    The places are in conda's documentation, "Using the .condarc conda configuration file".

    Args:
        environment: has HOME, PATH, CONDARC and the other variables of conda.
        root: the folder with `etc` and `var`. Only tests change it.
    """
    command = environment.get("CONDA_EXE") or next(
        filter(None, (shutil.which(one, path=environment.get("PATH")) for one in _COMMANDS)), ""
    )
    places = dict.fromkeys(_places(command, environment, root))
    files = (_file(place) for place in reversed(places))
    return Conda(command=command, files=tuple(file for file in files if file))


def _places(command: str, environment: Mapping[str, str], root: Path) -> Iterator[Path]:
    """Yield all paths at which conda looks for its configuration, the weakest first."""
    home = environment.get("HOME", "")
    install = environment.get("MAMBA_ROOT_PREFIX", "")
    if command and not install:
        # INSTALLATION/bin/conda or INSTALLATION/condabin/conda
        install = str(Path(os.path.realpath(command)).parent.parent)
    config = environment.get("XDG_CONFIG_HOME", "")
    prefix = environment.get("CONDA_PREFIX", "")
    for folder in (
        root / "etc" / "conda",
        root / "var" / "lib" / "conda",
        Path(install) if install else None,
        Path(config, "conda") if config else None,
        Path(home, ".config", "conda") if home else None,
        Path(home, ".conda") if home else None,
    ):
        yield from _inside(folder)
    if home:
        yield Path(home, ".condarc")
    yield from _inside(Path(prefix) if prefix else None)
    for variable in ("CONDARC", "MAMBARC"):
        if named := environment.get(variable):
            yield Path(
                os.path.expandvars(named.replace("~", home, 1) if named[0] == "~" else named)
            )


def _inside(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        return
    yield folder / ".condarc"
    yield folder / "condarc"
    try:
        names = sorted(os.listdir(folder / "condarc.d"))  # noqa: PTH208 - names are wanted
    except OSError:
        return
    for name in names:
        if name.endswith((".yml", ".yaml")):
            yield folder / "condarc.d" / name


def _file(path: Path) -> CondaFile | None:
    """Return a configuration file; None if there is no such file."""
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        return CondaFile(path=str(path), why=error.strerror or str(error))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return CondaFile(path=str(path), why="the file is not a text in UTF-8")
    try:
        channels, has_defaults = read_channels(text)
    except ValueError as error:
        return CondaFile(path=str(path), why=str(error))
    return CondaFile(
        path=str(path),
        channels=channels,
        redefines_defaults=has_defaults,
        is_writable=os.access(path, os.W_OK),
    )


def read_channels(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the list `channels` of a configuration, and whether it has `default_channels`.

    Raises:
        ValueError: the list cannot be read; the text says why.
    """
    channels: tuple[str, ...] = ()
    seen: set[str] = set()
    lines = text.removeprefix("\ufeff").splitlines()
    for number, line in enumerate(lines):
        key = _KEY.match(line)
        if key is None:
            continue
        name = "default_channels" if key[2] == "default_channels" else "channels"
        if name in seen:
            raise ValueError(f"line {number + 1} sets `{name}` a second time, which is not allowed")
        seen.add(name)
        if name == "channels":
            channels = _list(key["value"] or "", lines, number)
    return channels, "default_channels" in seen


def _list(value: str, lines: list[str], number: int) -> tuple[str, ...]:
    """Return a list that begins behind its key, in one of the two forms of YAML."""
    value = _without_comment(value)
    if value in {"", "null", "~"}:
        return tuple(_block(lines, number + 1))
    if not value.startswith("["):
        raise ValueError(f"line {number + 1}: `channels` is not a list")
    while not value.endswith("]"):
        number += 1
        if number >= len(lines):
            raise ValueError(f"line {number}: the list of channels has no closing bracket")
        value += f" {_without_comment(lines[number])}"
    inner = value[1:-1].strip().removesuffix(",")
    words = inner.split(",") if inner.strip() else []
    return tuple(_channel(word, number) for word in words)


def _block(lines: list[str], first: int) -> Iterator[str]:
    """Yield the items of a list that has one line for each item."""
    indent = None
    for number, line in enumerate(lines[first:], first):
        bare = _without_comment(line)
        if not bare:
            continue
        item = _ITEM.match(_COMMENT.sub("", line))
        if item is None:
            if line[0].isspace() or (bare.startswith("-") and bare != "---"):
                raise ValueError(f"line {number + 1} is not an item of the list of channels")
            return
        if indent is not None and item["indent"] != indent:
            raise ValueError(
                f"line {number + 1}: the indent differs from the indent of the item above"
            )
        indent = item["indent"]
        yield _channel(item["value"], number)


def _without_comment(text: str) -> str:
    return _COMMENT.sub("", text).strip()


def _channel(word: str, number: int) -> str:
    word = word.strip()
    if quoted := _QUOTED.match(word):
        return quoted["text"]
    if _PLAIN.match(word) is None or word.endswith(":") or ": " in word:
        raise ValueError(f"line {number + 1} has an item that is not the name of a channel")
    return word
