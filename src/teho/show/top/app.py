"""The screen of `teho top`: keys, mouse, and one tick."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.actions import SkipAction
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.timer import Timer
from textual.widgets import Input

from teho.model.live import NodeNow
from teho.show.top.frame import Frame, Source
from teho.show.top.gpu import gpu_view
from teho.show.top.head import head, run_facts
from teho.show.top.help import help_view
from teho.show.top.job import JobLines
from teho.show.top.node import GPU_COLUMNS, node_view
from teho.show.top.orders import NODE_ORDERS, PROCESS_ORDERS, Order
from teho.show.top.process import process_view
from teho.show.top.rows import WARNING, View
from teho.show.top.widgets import Lines, RowList

__all__ = ["TopApp"]

_TICK_S = 0.5
_CHECK_S = 0.05
"""How often the screen checks whether the first report is there."""
_ORDER_S = 5.0
"""Nodes change their places at most so often: one can read and choose a line."""
_PARTS = 4
_AROUND = 3
"""Columns of the list that rows do not have: the cursor, and the bar that shows the position."""
_HEAD_LINES = ((12, 1), (24, 3), (30, 4))
_MOST_HEAD_LINES = 5
"""Lines of a screen -> lines of the head if the screen has fewer."""
_ALL = 1_000_000
"""More rows than any list has."""
_ORDERS = (NODE_ORDERS, PROCESS_ORDERS)
_METRIC = "metric "
"""Begin of the key of a row with a metric."""


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
        self._topics: Sequence[str] = ()
        """Metrics of the row or column that was selected when the help was opened."""
        self._lines = JobLines()
        self._places: dict[str, int] = {}
        """Place of each node in the order."""
        self._placed_by: Order | None = None
        self._placed_s = float("-inf")
        self._checking: Timer | None = None
        """Checks whether the first report is there."""

    def compose(self) -> ComposeResult:
        """Yield the parts of the screen."""
        yield Lines("head")
        yield Lines("title")
        yield RowList()
        yield Lines("keys")
        yield Input(id="filter", placeholder="only rows with this text")

    def on_mount(self) -> None:
        """Begin to show frames."""
        self._list.focus()
        self._tick()
        self.set_interval(_TICK_S, self._tick)
        if self._source.awaits_report:
            self._checking = self.set_interval(_CHECK_S, self._check_report)

    @property
    def _list(self) -> RowList:
        return self.query_one("#list", RowList)

    def _tick(self) -> None:
        self._source.poll()
        if not self._is_frozen or self._frame is None:
            self._frame = self._source.frame()
        self._draw()

    def _check_report(self) -> None:
        if not self._source.awaits_report and self._checking is not None:
            self._checking.stop()
            self._tick()

    def _draw(self, *, first: bool = False) -> None:
        frame = self._frame
        if frame is None or len(self.query("#head, #title, #list, #keys")) < _PARTS:
            return  # the screen is being taken down
        width, height = self.size.width, self._list.size.height
        top = self.query_one("#head", Lines)
        top.show(head(frame, width, top.size.height))
        view = self._view(frame, width - _AROUND, height)
        self.query_one("#title", Lines).show([Text("  ") + view.title])
        self._list.show(view.rows, first=first)
        self.query_one("#keys", Lines).show([self._key_line()])

    def _view(self, frame: Frame, width: int, height: int) -> View:
        if self._is_help:
            return help_view(width, self._topics, run_facts(frame))
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

    def on_row_list_opened(self, message: RowList.Opened) -> None:
        """Show what the user has opened."""
        self._show_entry(shown=False)
        if message.key.startswith(_METRIC):
            self.action_help()
        elif not self._is_help:
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
            self.query_one("#keys", Lines).display = not shown
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
        """Keep the present values, or continue."""
        self._is_frozen = not self._is_frozen
        self._draw()

    def action_help(self) -> None:
        """Show the help, first of what is selected; or leave it."""
        self._is_help = not self._is_help
        if self._is_help:
            self._topics = self._selected()
        self._draw(first=True)

    def _selected(self) -> Sequence[str]:
        """Return the metrics of the selected row; of nodes, of the column that sorts them."""
        key = self._list.selected
        if key.startswith(_METRIC):
            return (key.removeprefix(_METRIC),)
        if self._level == 0:
            metric = NODE_ORDERS[self._orders[0]].metric
            has_gpus = self._frame is not None and any(node.gpus for node in self._frame.nodes)
            if metric.startswith("gpu_") and not has_gpus:
                metric = "cpu_busy_percent"
            return (metric,) if metric else ()
        return GPU_COLUMNS if self._level == 1 and key.startswith("gpu ") else ()

    def on_resize(self, event: Resize) -> None:
        """Draw for the new size. On a small screen, the rows need the lines of the head."""
        fitting = (lines for height, lines in _HEAD_LINES if event.size.height < height)
        self.query_one("#head", Lines).styles.height = next(fitting, _MOST_HEAD_LINES)
        self.call_after_refresh(self._draw)
