"""Disagreements of plans with the scheduler of a random site, and counts of comparisons."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from teho.model.request import Request

__all__ = ["Case", "Tally", "signs"]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A disagreement; a scheduler's own kind says how its sites are told."""

    scheduler: ClassVar[str]
    directive: ClassVar[str]
    """How a line of a script begins that says something to the scheduler."""

    verdict: str
    """`false yes`, `false no`, `figure`, `crash`, or `unsure`."""
    what: str
    """Its category."""
    site: Any
    request: Request | None
    partition: str = ""
    teho: str
    answer: str
    """The scheduler's."""
    script: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.verdict, self.what

    @property
    def site_text(self) -> str:
        raise NotImplementedError

    def told(self) -> str:
        """Return the case as text."""
        directives = re.findall(rf"^{re.escape(self.directive)} .*", self.script, re.MULTILINE)
        rows = (
            self.site_text,
            f"Request: {_request_text(self.request)}" if self.request else "",
            f"Partition: {self.partition}" if self.partition else "",
            f"Teho: {self.teho}",
            *directives,
            f"{self.scheduler}: {self.answer}",
        )
        return "\n".join(row for row in rows if row)


class Tally(msgspec.Struct):
    """Counts and disagreements."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    cases: list[Case] = msgspec.field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts.update(other.counts)
        self.cases += other.cases

    def told(self) -> str:
        """Return all disagreements as text."""
        return "\n".join(f"## {one.verdict}: {one.what}\n{one.told()}\n" for one in self.cases)


def signs(what: str, announced: float, given: float, tolerance: float = 0.01) -> Iterator[str]:
    """Yield the category of a figure that differs from the announced one."""
    if given < announced - tolerance:
        yield f"{what}: less than announced"
    elif given > announced + tolerance:
        yield f"{what}: more than announced"


def _request_text(request: Request) -> str:
    said = {name: getattr(request, name) for name in request.__struct_fields__ if name != "command"}
    plain = Request()
    rows = [f"{name}={value}" for name, value in said.items() if value != getattr(plain, name)]
    return ", ".join(rows) or "gpus=1"
