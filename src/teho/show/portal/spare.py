"""A process that has loaded Teho's modules already, and waits for the question of one page."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.process.isolated_call import IsolatedCall, executing

__all__ = ["SPARE_S", "Spare"]

SPARE_S = 120.0
"""Time after which the process ends if it gets no question."""
_MARGIN_S = 20.0
"""The process is not used in the last part of this time: it may be ending."""


class Spare:
    """A process for one page. It has read no recording until it gets its question.

    Args:
        teho: the command of this Teho.
        deadline_s: time for the page.

    Raises:
        OSError: the process cannot be started.
    """

    def __init__(self, teho: Sequence[str], deadline_s: float) -> None:
        read_end, self._question = os.pipe()
        try:
            self._call = IsolatedCall(
                "the report",
                executing([*teho, "portal-page", "wait"], os.environ, read_end),
                SPARE_S + deadline_s,
            )
        except OSError:
            os.close(self._question)
            raise
        finally:
            os.close(read_end)
        self._deadline_s = deadline_s
        self._until_s = time.monotonic() + SPARE_S - _MARGIN_S

    @property
    def is_fresh(self) -> bool:
        """Whether it still waits."""
        return time.monotonic() < self._until_s

    def ask(self, kind: str, directories: Sequence[Path]) -> IsolatedCall | None:
        """Give the process its question; None if it has ended.

        Args:
            kind: see `computed` in `child.py`.
            directories: the recordings.
        """
        question = msgspec.json.encode([kind, [str(one) for one in directories]])
        try:
            with os.fdopen(self._question, "wb") as pipe:
                pipe.write(question)
        except OSError:
            self._call.end()
            return None
        self._call.allow(self._deadline_s)
        return self._call

    def end(self) -> None:
        """End the process without a question."""
        os.close(self._question)
        self._call.end()
