"""A signal that asks a long command to end: it says what it knows by then, and exits so."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["EndedEarly"]

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class EndedEarly:
    """Within it, a signal that asks to end is a KeyboardInterrupt.

    Whatever runs there returns what it knows when that comes; if it comes before there is
    anything to tell, the command exits.
    """

    def __init__(self) -> None:
        self.by = 0
        """The signal; 0: none came."""

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._end) for number in _ASKING}
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
        """End the command, after its last word: as a signal wanted, or with 1 if all is not well.

        Raises:
            click.exceptions.Exit: with the code, where it is not 0.
        """
        if self.by or not well:
            raise click.exceptions.Exit(128 + self.by if self.by else 1)
