"""The screen of `teho top`: keys, mouse, and one tick."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from teho.model.live import NodeNow
from teho.show.top.frame import Frame, Source
from teho.show.top.gpu import gpu_view
from teho.show.top.head import head
from teho.show.top.help import help_view
from teho.show.top.job import JobLines
from teho.show.top.node import node_view
from teho.show.top.orders import NODE_ORDERS, PROCESS_ORDERS, Order
from teho.show.top.process import process_view
from teho.show.top.rows import WARNING, Row, View

__all__ = ["TopApp"]

_TICK_S = 0.5
_ORDER_S = 5.0
"""Nodes change their places at most so often: one can read and choose a line."""
_HEAD_LINES = 3
_SMALL_LINES = 12
_ALL = 1_000_000
"""More rows than any list has."""
_ORDERS = (NODE_ORDERS, PROCESS_ORDERS)


class _Lines(Widget):
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


class _List(ScrollView, can_focus=True, inherit_bindings=False):
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


class TopApp(App[None]):
    """Shows the frames of a source until the user ends it."""

    CSS = """
    Screen { background: ansi_default; color: ansi_default; }
    #head, #title, #keys { width: 100%; }
    #head { height: 3; }
    #title, #keys, #filter { height: 1; }
    #filter { border: none; padding: 0 2; background: ansi_default; display: none; }
    #list { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }
    #list { background: ansi_default; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,f10", "quit"),
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown,space", "page(1)"),
        Binding("home,g", f"move(-{_ALL})"),
        Binding("end,G", f"move({_ALL})"),
        Binding("enter,right,l", "open"),
        Binding("escape,left,h,backspace", "leave"),
        Binding("s", "sort"),
        Binding("slash", "filter", priority=True),
        Binding("f,p", "freeze"),
        Binding("question_mark,f1", "help"),
    ]

    def __init__(self, source: Source) -> None:
        super().__init__(ansi_color=True)
        self._source = source
        self._frame: Frame | None = None
        self._path: list[str] = []
        """What is open: nothing, a node, a GPU or process of it: `gpu 0`, a process of this GPU."""
        self._orders = [next(iter(orders)) for orders in _ORDERS]
        """Of the nodes, and of the processes of a node."""
        self._patterns = ["", ""]
        """Text in the names of the nodes, and in the commands of the processes, that are shown."""
        self._is_frozen = False
        self._is_help = False
        self._lines = JobLines()
        self._places: dict[str, int] = {}
        """Place of each node in the order."""
        self._placed_by: Order | None = None
        self._placed_s = float("-inf")

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield _Lines("head")
        yield _Lines("title")
        yield _List()
        yield _Lines("keys")
        yield Input(id="filter", placeholder="only rows with this text")

    def on_mount(self) -> None:
        """Begin to show frames."""
        self._list.focus()
        self._tick()
        self.set_interval(_TICK_S, self._tick)

    @property
    def _list(self) -> _List:
        return self.query_one("#list", _List)

    def _tick(self) -> None:
        self._source.poll()
        if not self._is_frozen or self._frame is None:
            self._frame = self._source.frame()
        self._draw()

    def _draw(self, *, first: bool = False) -> None:
        frame = self._frame
        if frame is None or not self.query("#list"):
            return  # the screen is being taken down
        width, height = self.size.width, self._list.size.height
        top = self.query_one("#head", _Lines)
        top.show(head(frame, width, top.size.height))
        view = self._view(frame, width - 2, height)
        self.query_one("#title", _Lines).show([Text("  ") + view.title])
        self._list.show(view.rows, first=first)
        self.query_one("#keys", _Lines).show([self._key_line()])

    def _view(self, frame: Frame, width: int, height: int) -> View:
        if self._is_help:
            return help_view(width)
        if frame.answer is not None:
            # Seldom needed, and large.
            from teho.show.top.accounted import accounted_view

            return accounted_view(frame, width)
        if not self._path:
            return self._lines.view(self._shown_nodes(frame), width, self._patterns[0])
        name = self._path[0]
        if self._level == 1:
            return node_view(frame, name, width, self._orders[1], self._patterns[1])
        kind, _, number = self._path[-1].partition(" ")
        position = int(number)
        if kind == "process":
            return process_view(frame, name, position, self._source.process(name, position), width)
        return gpu_view(frame, name, position, self._source.curves(name, position), width, height)

    def _shown_nodes(self, frame: Frame) -> list[NodeNow]:
        """Return the nodes that are shown. Their order is kept for some seconds."""
        order, now_s = NODE_ORDERS[self._orders[0]], time.monotonic()
        is_new = any(node.node.name not in self._places for node in frame.nodes)
        if is_new or order is not self._placed_by or now_s - self._placed_s >= _ORDER_S:
            self._placed_by, self._placed_s = order, now_s
            self._places = {
                node.node.name: place for place, node in enumerate(order.sorted(frame.nodes))
            }
        return sorted(
            (node for node in frame.nodes if self._patterns[0].lower() in node.node.name.lower()),
            key=lambda node: self._places[node.node.name],
        )

    def _key_line(self) -> Text:
        keys = [("q", "quit"), ("?", "help"), ("f", "continue" if self._is_frozen else "freeze")]
        if self._path or self._is_help:
            keys.insert(0, ("Esc", "back"))
        if self._has_rows:
            keys.insert(0, ("Enter", "open"))
            order = _ORDERS[self._level][self._orders[self._level]].title
            keys += [("s", f"sort: {order}"), ("/", "filter")]
        line = Text("  ")
        if self._is_frozen:
            line.append("FROZEN   ", WARNING)
        if self._has_rows and self._patterns[self._level]:
            line.append(f"ONLY {self._patterns[self._level]}   ", WARNING)
        for key, what in keys:
            line.append(key, "bold").append(f" {what}   ", "dim")
        return line

    @property
    def _level(self) -> int:
        """0: the nodes of the job, 1: a node, 2: a GPU or process of it, 3: a process of a GPU."""
        return len(self._path)

    @property
    def _has_rows(self) -> bool:
        """Whether the screen shows rows that can be sorted and filtered."""
        has_samples = self._frame is None or self._frame.answer is None
        return self._level < len(_ORDERS) and not self._is_help and has_samples

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        self._list.move(by)

    def action_page(self, by: int) -> None:
        """Move by screens."""
        self._list.page(by)

    def action_open(self) -> None:
        """Open the row of the cursor."""
        if not self._is_help:
            self._list.open()

    def on__list_opened(self, message: _List.Opened) -> None:
        """Show what the user has opened."""
        self._show_entry(shown=False)
        if not self._is_help:
            self._path.append(message.key)
            self._draw(first=True)

    def action_leave(self) -> None:
        """Remove the filter, or go back."""
        is_typing = self.query_one("#filter", Input).display
        self._show_entry(shown=False)
        if self._is_help:
            self._is_help = False
        elif self._has_rows and (is_typing or self._patterns[self._level]):
            self._patterns[self._level] = ""
        elif self._path:
            self._path.pop()
        self._draw(first=True)

    def action_sort(self) -> None:
        """Sort the nodes, or the processes, by the next order."""
        if self._has_rows:
            orders = list(_ORDERS[self._level])
            place = orders.index(self._orders[self._level])
            self._orders[self._level] = orders[(place + 1) % len(orders)]
            self._draw()

    def action_filter(self) -> None:
        """Ask for a text; only rows with this text are shown.

        Raises:
            SkipAction: the user types this text, and the key belongs to it.
        """
        entry = self.query_one("#filter", Input)
        if entry.display:
            raise SkipAction
        if self._has_rows:
            entry.value = self._patterns[self._level]
            self._show_entry(shown=True)

    def _show_entry(self, *, shown: bool) -> None:
        entry = self.query_one("#filter", Input)
        if entry.display != shown:
            entry.display = shown
            self.query_one("#keys", _Lines).display = not shown
            self.screen.set_focus(entry if shown else self._list)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        if self._has_rows and event.input.display:
            self._patterns[self._level] = event.value
            self._draw(first=True)

    def on_input_submitted(self) -> None:
        """Go back to the rows."""
        self._show_entry(shown=False)
        self._draw()

    def action_freeze(self) -> None:
        """Keep the present values, or go on."""
        self._is_frozen = not self._is_frozen
        self._draw()

    def action_help(self) -> None:
        """Show the help, or leave it."""
        self._is_help = not self._is_help
        self._draw(first=True)

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size. On a very small screen, the rows need the lines of the head."""
        is_small = event.size.height < _SMALL_LINES
        self.query_one("#head", _Lines).styles.height = 1 if is_small else _HEAD_LINES
        self.call_after_refresh(self._draw)
