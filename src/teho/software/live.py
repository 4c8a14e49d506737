"""What an installed Python says of the packages beside it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.model.software import Package
from teho.software.listing import package_of

__all__ = ["PROGRAM", "Installed", "read_answer"]

PROGRAM = Path(__file__).with_name("what_is_installed.py")
"""What a Python of 3.8 or later runs to say it."""
_SAME = {"torch": "pytorch"}
"""conda's names of what pip calls otherwise."""


class Installed(NamedTuple):
    """What a Python has beside it."""

    python: str
    """Its version."""
    machine: str
    """Such as `x86_64`."""
    packages: list[Package]
    facts: dict[str, str]
    """What frameworks' own files say of their build, as `builds_of` takes it."""


class _Answer(msgspec.Struct):
    python: str
    machine: str
    packages: list[dict[str, str]]
    facts: dict[str, str]


def read_answer(data: bytes) -> Installed:
    """Read what `PROGRAM` printed.

    Raises:
        msgspec.MsgspecError: it is something else.
    """
    answer = msgspec.json.decode(data, type=_Answer)
    packages = [one for record in answer.packages if (one := package_of(record))]
    by_conda = {one.name.replace("_", "-") for one in packages if one.origin == "conda"}
    kept = [
        one
        for one in packages
        # conda's Python packages are distributions too.
        if one.origin == "conda" or {one.name, _SAME.get(one.name, one.name)}.isdisjoint(by_conda)
    ]
    return Installed(answer.python, answer.machine, kept, answer.facts)
