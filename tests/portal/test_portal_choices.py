"""The values of the filters: a page never waits for a second count."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support import wait_for
from teho.show.portal import choices
from teho.show.portal.choices import Choices
from teho.store.search import CHOICES


class Counted:
    """In place of the index: each count can be made to wait, and has another result."""

    def __init__(self) -> None:
        self.may_count = threading.Event()
        self.count = 0

    @contextmanager
    def search(self, *, group: bool) -> Iterator[Counted]:
        assert not group
        yield self

    def choices(self, column: str) -> list[tuple[str, int]]:
        assert self.may_count.wait(30)
        self.count += column == CHOICES[0]
        return [("lumi", self.count)]


def test_old_values_are_shown_while_they_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recordings: Any = Counted()
    recordings.may_count.set()
    shown = Choices(recordings)
    assert shown.get(group=False) == {column: [("lumi", 1)] for column in CHOICES}
    assert shown.get(group=False)["cluster"] == [("lumi", 1)], "they are not old yet"
    recordings.may_count.clear()
    monkeypatch.setattr(choices, "_FRESH_S", 0.0)
    assert shown.get(group=False)["cluster"] == [("lumi", 1)]
    monkeypatch.setattr(choices, "_FRESH_S", 60.0)
    recordings.may_count.set()
    wait_for(lambda: shown.get(group=False)["cluster"] == [("lumi", 2)])
    assert recordings.count == 2
