"""How a long command ends early: a signal, after which it prints what it knows."""

from __future__ import annotations

import signal
import sys
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NoReturn

import click

from teho.cli import say

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["EndedEarly", "interrupted"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndedEarly:
    """A context in which SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt.

    The code inside catches it and returns what it knows. If it has no result yet, it lets the
    exception through, and the command exits.
    """

    def __init__(self) -> None:
        self.by = 0
        """Number of the signal; 0: no signal came."""

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._end) for number in _SIGNALS}
        return self

    def _end(self, number: int, _: FrameType | None) -> NoReturn:
        self.by = number
        raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        if kind is KeyboardInterrupt:
            raise click.exceptions.Exit(128 + self.by) from None

    def leave(self, *, well: bool) -> None:
        """End the command after its result is printed: 128 + signal, or 1 if not `well`.

        Raises:
            click.exceptions.Exit: with the exit code, unless it is 0.
        """
        if self.by or not well:
            raise click.exceptions.Exit(128 + self.by if self.by else 1)


def interrupted(words: str) -> click.exceptions.Exit:
    """Say what Ctrl-C means for a job; return the end of the command."""
    if sys.stderr.isatty():
        click.echo(err=True)  # the terminal has written ^C
    say(words)
    return click.exceptions.Exit(130)
