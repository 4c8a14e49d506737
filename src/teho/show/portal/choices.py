"""The values of the filters of a list, each with its number of runs."""

from __future__ import annotations

import threading
import time

from teho.show.portal.recordings import Recordings
from teho.store.search import CHOICES

__all__ = ["Choices"]

_FRESH_S = 20.0

_Values = dict[str, list[tuple[str, int]]]
"""Column -> its values with their number of runs."""


class Choices:
    """Counts the values. If there are many runs, this takes longer than the rest of the page.

    Args:
        recordings: the runs.
    """

    def __init__(self, recordings: Recordings) -> None:
        self._recordings = recordings
        self._known: dict[bool, tuple[float, _Values]] = {}
        """Are they of the group -> when they were counted, and the values."""

    def get(self, *, group: bool) -> _Values:
        """Return the values; old ones are counted again in the background, for the next page."""
        known_s, known = self._known.get(group, (float("-inf"), None))
        if known is None:
            return self._count(group=group)
        if time.monotonic() - known_s >= _FRESH_S:
            self._known[group] = time.monotonic(), known
            threading.Thread(target=self._count, kwargs={"group": group}, daemon=True).start()
        return known

    def _count(self, *, group: bool) -> _Values:
        fresh = {}
        for column in CHOICES:
            # Other pages can be shown in between.
            with self._recordings.search(group=group) as search:
                fresh[column] = search.choices(column)
        self._known[group] = time.monotonic(), fresh
        return fresh
