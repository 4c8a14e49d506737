"""Packages of an installed Python, as it reports them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.model.software import Package
from teho.software.listing import package_of

__all__ = ["PROGRAM", "Installed", "read_answer"]

PROGRAM = Path(__file__).with_name("what_is_installed.py")
"""The program that reports them. It needs Python 3.8 or later."""
_SAME = {"torch": "pytorch"}
"""pip's name of a package -> conda's name, if they differ."""


class Installed(NamedTuple):
    """The packages of a Python."""

    python: str
    """Version of the Python."""
    machine: str
    """Such as `x86_64`."""
    packages: list[Package]
    facts: dict[str, str]
    """Facts from the frameworks' files; see `builds_of`."""


class _Answer(msgspec.Struct):
    python: str
    machine: str
    packages: list[dict[str, str]]
    facts: dict[str, str]


def read_answer(data: bytes) -> Installed:
    """Read the output of `PROGRAM`.

    Raises:
        msgspec.MsgspecError: the output has another form.
    """
    answer = msgspec.json.decode(data, type=_Answer)
    packages = [one for record in answer.packages if (one := package_of(record))]
    by_conda = {one.name.replace("_", "-") for one in packages if one.origin == "conda"}
    kept = [
        one
        for one in packages
        # conda's Python packages are also listed as distributions.
        if one.origin == "conda" or {one.name, _SAME.get(one.name, one.name)}.isdisjoint(by_conda)
    ]
    return Installed(answer.python, answer.machine, kept, answer.facts)
