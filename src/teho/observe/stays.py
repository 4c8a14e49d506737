"""Notices that a thread stays in one line of the program, so that this is written soon.

In a long run, the samples of a process are added up for minutes before they are written. A thread
that stays in one line for a long time may be stuck: then its samples are written while it stays.
"""

from __future__ import annotations

from teho.model.stack import State, is_library
from teho.unwind.stack import Key, Place

__all__ = ["Samples", "Stay", "Stays", "add_samples", "line_in"]

Samples = dict[tuple[Key, State], list[float]]
"""Stack and state -> [samples, wall s]."""

_MARK_S = 15.5
"""The first time after which a stay is written, and the least time between two writes. Three of
them are just longer than the time after which a run can be stuck."""
_MARK_SHARE = 1 / 8
"""Time between two writes of a long stay, as a share of its time so far."""
_MOST_USUAL = 16
"""After this number of stays that were written and then ended, such stays are usual: from then on,
only stays of twice the length are written. This limits the number of writes of a run."""
_AWAY_SHARE, _MOST_AWAY_S = 0.05, 2.0
"""A thread may leave its line for this share of the time, for at most `_MOST_AWAY_S` at a time: it
wakes up now and then, and checks whether it still has to wait."""
_AFTER_S = 10.0
"""A process that continues after a stay is written once more after this time."""


class Stay:
    """The time since a thread came to the line in which it is.

    Args:
        line: the innermost place in the program's own files; None: there is none.
        began_s: monotonic time.
        account: the kernel's account of the thread at this time, see `Waits.account`.
    """

    __slots__ = ("account", "away_s", "began_s", "left_s", "line", "mark_s", "samples", "writes")

    def __init__(self, line: Place | None, began_s: float, account: bytes, mark_s: float) -> None:
        self.line = line
        self.began_s = began_s
        self.account = account
        self.left_s: float | None = None
        """Since when it is in another line. None: it is in this line."""
        self.away_s = 0.0
        """How long it was in other lines before that."""
        self.mark_s = mark_s
        """Its length from which it is to be written."""
        self.samples: Samples = {}
        """Its samples since the last write."""
        self.writes = 0

    def is_left(self, line: Place | None, last_s: float, now_s: float) -> bool:
        """Return whether a thread has left the line for good.

        Args:
            line: its present line.
            last_s: the time of the sample before.
            now_s: the present time.
        """
        if line == self.line:
            if self.left_s is not None:
                self.away_s += last_s - self.left_s
            self.left_s = None
            return False
        if self.left_s is None:
            self.left_s = last_s
        away_s = now_s - self.left_s
        most_s = _AWAY_SHARE * (now_s - self.began_s) - self.away_s
        return not self.writes or away_s > min(most_s, _MOST_AWAY_S)

    def is_due(self, now_s: float) -> bool:
        """Return whether it is to be written now, and set the next time."""
        length_s = now_s - self.began_s
        if length_s < self.mark_s:
            return False
        # Not from the length: then each delay of a sample would delay all later writes.
        while self.mark_s <= length_s:
            self.mark_s += max(_MARK_S, _MARK_SHARE * self.mark_s)
        self.writes += 1
        return True


class Stays:
    """The stays of one thread, one after the other.

    Args:
        now_s: monotonic time.
        account: the kernel's account of the thread.
    """

    def __init__(self, now_s: float, account: bytes) -> None:
        self._mark_s = _MARK_S
        self._usual = 0
        self.after_s = float("inf")
        """Monotonic time at which the process is to be written, because a stay has ended."""
        self.present = Stay(None, now_s, account, self._mark_s)

    def move_to(
        self, line: Place | None, last_s: float, now_s: float, account: bytes
    ) -> Stay | None:
        """Begin a new stay if the thread is in another line; return the one that has ended.

        Args:
            line: the line of the newest sample.
            last_s: when the sample before was taken.
            now_s: when the newest sample was taken.
            account: the kernel's account of the thread.
        """
        ended = self.present
        if not ended.is_left(line, last_s, now_s):
            return None
        if ended.writes:
            self.after_s = now_s + _AFTER_S
            self._usual += 1
            if self._usual >= _MOST_USUAL:
                self._usual, self._mark_s = 0, 2 * self._mark_s
        self.present = Stay(line, last_s, account, self._mark_s)
        return ended


def line_in(key: Key) -> Place | None:
    """Return the innermost place of a stack that is in the program's own files."""
    return next((place for place in key if not is_library(place[0].file)), None)


def add_samples(samples: Samples, more: Samples) -> None:
    """Add samples to others."""
    for key, (count, wall_s) in more.items():
        figures = samples.setdefault(key, [0, 0.0])
        figures[0] += count
        figures[1] += wall_s
