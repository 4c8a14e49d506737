"""The parts of the screen: lines of text, and a list of rows of which one can be chosen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from teho.show.top.rows import Row

__all__ = ["Lines", "RowList"]


class Lines(Widget):
    """Some lines of text. Only lines that changed are written to the terminal."""

    def __init__(self, id_: str) -> None:
        super().__init__(id=id_)
        self._texts: list[Text] = []

    def show(self, lines: Sequence[Text]) -> None:
        """Show other lines."""
        before, self._texts = self._texts, list(lines)
        for place in range(max(len(before), len(self._texts))):
            old, new = before[place : place + 1], self._texts[place : place + 1]
            if old != new:
                self.refresh(Region(0, place, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """Return a line for the terminal."""
        text = self._texts[y] if y < len(self._texts) else Text()
        return _strip(text, self.size.width, self.app.console)


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of which one can be chosen. The keys that scroll would not move the cursor."""

    class Opened(Message):
        """The user has opened a row."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self) -> None:
        super().__init__(id="list")
        self._rows: list[Row] = []
        self._key = ""

    @property
    def selected(self) -> str:
        """Key of the selected row; empty if there is none."""
        return self._key

    @property
    def _keys(self) -> list[str]:
        return [row.key for row in self._rows if row.key]

    def show(self, rows: Sequence[Row], *, first: bool = False) -> None:
        """Show rows; the cursor stays on its row.

        Args:
            rows: all rows.
            first: whether the cursor moves to the first row.
        """
        before, self._rows = self._rows, list(rows)
        old_key = self._key
        if first or self._key not in self._keys:
            self._key = next(iter(self._keys), "")
        if len(before) != len(self._rows):
            self.virtual_size = Size(self.size.width, len(self._rows))
        for place in range(max(len(before), len(self._rows))):
            old, new = before[place : place + 1], self._rows[place : place + 1]
            moved = old_key != self._key and any(
                row.key and row.key in {old_key, self._key} for row in (*old, *new)
            )
            if old != new or moved:
                self._refresh_row(place)
        if first:
            self.scroll_to(0, 0, animate=False)

    def _refresh_row(self, place: int) -> None:
        line = place - self.scroll_offset.y
        if 0 <= line < self.size.height:
            # Textual writes a line from its beginning, so to refresh a part of it saves nothing.
            self.refresh(Region(0, line, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """Return a line for the terminal."""
        place = y + self.scroll_offset.y
        row = self._rows[place] if place < len(self._rows) else Row(Text())
        line = row.line
        if row.key and row.key == self._key:
            line = Text("▶ ") + line
            line.stylize("bold")
        else:
            line = Text("  ") + line
        return _strip(line, self.size.width, self.app.console)

    def move(self, by: int) -> None:
        """Move the cursor; scroll if the next row that can be chosen is not near."""
        keys = self._keys
        place = keys.index(self._key) if self._key in keys else 0
        target = max(0, min(len(keys) - 1, place + by))
        if target == place or (abs(by) == 1 and not self._is_near(keys[target])):
            self.scroll_relative(y=by, animate=False)
            return
        old, self._key = self._key, keys[target]
        for number, row in enumerate(self._rows):
            if row.key in {old, self._key}:
                self._refresh_row(number)
                if row.key == self._key:
                    self.scroll_to_region(Region(0, number, 1, 1), animate=False)

    def _is_near(self, key: str) -> bool:
        """Return whether a row is on the screen, or on the line before or after it."""
        place = [row.key for row in self._rows].index(key)
        return -1 <= place - self.scroll_offset.y <= self.size.height

    def page(self, by: int) -> None:
        """Move by whole screens."""
        self.move(by * max(1, self.size.height - 1))

    def open(self) -> None:
        """Open the row of the cursor."""
        if self._key:
            self.post_message(self.Opened(self._key))

    def on_click(self, event: Click) -> None:
        """Open the row under the mouse."""
        place = event.y + self.scroll_offset.y
        if place < len(self._rows) and self._rows[place].key:
            self._key = self._rows[place].key
            self.open()


def _strip(text: Text, width: int, console: Console) -> Strip:
    shown = text.copy()
    shown.truncate(width, pad=True)
    return Strip(list(shown.render(console)), width)
