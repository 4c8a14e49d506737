"""The costly options that Teho knows, from `costly_options.toml` and two tables like it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Union

import msgspec

from teho.config.toml import read_toml

__all__ = ["Option", "costly_options", "ends", "fits"]

_FILES = tuple(
    Path(__file__).parents[1] / name
    for name in ("costly_options.toml", "gpu_calls.toml", "faster_calls.toml")
)


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option of `costly_options.toml`; the file describes the keys."""

    name: str
    calls: tuple[str, ...]
    keywords: tuple[str, ...] = ()
    position: Union[int, None] = None
    value: str = ""
    at_call: bool = False
    in_tables: bool = False
    without: tuple[str, ...] = ()
    arguments: Union[int, None] = None
    first: str = ""
    object: str = ""
    inside: str = ""
    used: tuple[int, ...] = ()
    item: Union[int, None] = None
    only_in: tuple[str, ...] = ()
    numbers: str = ""
    products: bool = False
    widest: bool = False
    objects: bool = False
    itself: bool = False
    native: bool = False
    rows_of: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    here: bool = False
    files: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    waits: bool = False
    limits: tuple[str, ...] = ()
    cores: bool = False
    cpu: bool = False
    workers: bool = False
    gpu: Literal["", "few_threads", "few_in_lines", "waited", "busy", "time", "used", "narrow"] = ""
    kernels: str = ""
    columns: bool = False
    compiled_once: bool = False
    ranks: bool = False
    rule: str = ""
    activities: tuple[str, ...] = ()
    what: str = ""
    why: str = ""
    advice: str
    regain: tuple[float, float] = (0.0, 0.0)
    certainty: Literal["", "likely", "possible"] = ""

    @property
    def is_on_stacks(self) -> bool:
        """Whether the option counts only if the line that uses it is on a stack."""
        return self.here or bool(self.numbers or self.rows_of)

    @property
    def is_slow_call(self) -> bool:
        """Whether a search in `slow_calls` finds it, and gives the words of its advice."""
        return not (self.calls or self.numbers)

    @property
    def is_known_to_run(self) -> bool:
        """Whether the stacks, or the facts of another rule, show that the program uses it."""
        return self.is_on_stacks or bool(self.gpu) or (bool(self.rule) and not self.activities)

    @property
    def needs_all_files(self) -> bool:
        """Whether it depends on all files of the program."""
        return bool(self.unless or self.others)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    option: tuple[Option, ...]


@functools.cache
def costly_options() -> tuple[Option, ...]:
    """Return the content of the files."""
    return tuple(one for file in _FILES for one in msgspec.convert(read_toml(file), _File).option)


def ends(names: Sequence[str]) -> tuple[str, ...]:
    r"""Return patterns for the last words of names: of `torch\.(save|load)`, `(save|load)`."""
    return tuple(_end(one) for one in names)


@functools.cache
def _end(name: str) -> str:
    """Return the pattern after the last dot, or after the last dot in the key of a setting."""
    key = name.removesuffix(r"\]").rpartition(r"\[")[2] if name.endswith(r"\]") else name
    depth = 0
    for place in range(len(key) - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(key[place], 0)
        if depth == 0 and key[place - 1 : place + 1] == r"\.":
            return key[place + 1 :]
    return key


def fits(patterns: Sequence[str], text: str) -> bool:
    """Return whether one of some patterns matches a whole text."""
    return bool(patterns) and _compiled(tuple(patterns)).fullmatch(text) is not None


@functools.cache
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in patterns))
