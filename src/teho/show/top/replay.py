"""Frames of a finished run, as they were."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.config.settings import Settings
from teho.explain.now import FAULTS, NewestValues
from teho.explain.step import node_ends_s, offset_s
from teho.model.document import Report
from teho.model.run import Node, Run
from teho.model.watched import WatchedProcess
from teho.observe.viewer import Received
from teho.show.loaded import LoadedRun
from teho.show.top.frame import CURVES, KEPT, Curve, Frame, report_of, unjudged
from teho.show.top.past import facts_at
from teho.store.moments import NodeMoments

__all__ = ["ReplaySource"]

_ROUNDED_S = 0.01
_LONGEST_S = 0.2
"""Longest time of a tick for reading more nodes."""
_COLUMNS = {
    "node": ("cpu_busy_percent", "job_memory_bytes", "core_busy_percent"),
    "gpu": tuple({*CURVES, *FAULTS}),
}
"""Columns that the line of a node needs. For any other column, all columns of a node are read."""


class ReplaySource:
    """Plays a recording. The first frame has the nodes that are read by then.

    Args:
        directory: the recording.
        settings: the user's settings.
        speed: seconds of the run for each second.
    """

    def __init__(self, directory: Path, settings: Settings, speed: float) -> None:
        self._loaded = LoadedRun(directory, settings)
        self._run: Run = self._loaded.run
        self._directory = directory
        self._speed = speed
        self._so_far = unjudged(
            self._loaded,
            "The replay shows the values, the pace and the cost of each moment. The verdict and "
            "the energy follow at the end. A recording has no list of processes.",
        )
        self._is_summed = False
        self._whole: Report | None = None
        self._reporting = threading.Thread(target=self._report, name="report", daemon=True)
        self._unread = deque(self._run.nodes)
        self._nodes: dict[str, NodeMoments] = {}
        self._offsets_s = {node.name: offset_s(self._run, node) for node in self._run.nodes}
        self._ends_s = node_ends_s(self._run)
        self._shown_until_s: dict[str, float] = {}
        self._last_s = self._run.end.elapsed_s if self._run.end else 0.0
        self._values = NewestValues()
        self._began_s = time.monotonic()
        self.poll()

    @property
    def at_s(self) -> float:
        """Moment of the run that is shown, in seconds after the start of the program."""
        at_s = (time.monotonic() - self._began_s) * self._speed
        # Without a known end, the last row of all nodes is the end.
        return at_s if self._unread and not self._run.end else min(self._last_s, at_s)

    def poll(self, *, reads_all: bool = False) -> None:
        """Read some nodes. The time continues by itself."""
        until_s = float("inf") if reads_all else time.monotonic() + _LONGEST_S
        while self._unread:
            self._read(self._unread.popleft())
            if not self._unread:
                self._reporting.start()
            if time.monotonic() > until_s:
                break

    def _read(self, node: Node) -> None:
        kinds = {kind: _COLUMNS[kind] for kind in ("node", *(["gpu"] if node.devices else []))}
        read = self._nodes[node.name] = NodeMoments(self._directory, node.name, kinds)
        self._last_s = max(self._last_s, read.last_s + self._offsets_s[node.name])
        self._shown_until_s[node.name] = self._until_s(node, read)

    def _until_s(self, node: Node, read: NodeMoments) -> float:
        """Return the end of the rows of a node, without a row from after the end of the program."""
        last, end_s = read.at(read.last_s), self._ends_s.get(node.name)
        if last is None or end_s is None or not last.sample.is_after(end_s, node.period_s):
            return read.last_s
        before_s = read.last_s - max(row["span_s"] for row in last.sample.rows) - _ROUNDED_S
        return read.last_s if read.at(before_s) is None else before_s

    def frame(self) -> Frame:
        """Return the state at the present moment of the replay."""
        at_s = self.at_s
        newest: dict[str, Received] = {}
        for name, node in self._nodes.items():
            offset = self._offsets_s[name]
            if found := node.at(min(at_s - offset, self._shown_until_s[name])):
                newest[name] = Received(
                    found.sample, found.at_s + offset, found.before, "recording"
                )
        run = self._run
        notes = [f"replay at {self._speed:g} times the speed"]
        if self._unread:
            nodes = tuple(node for node in run.nodes if node.name in self._nodes)
            notes.append(f"{len(nodes)} of {len(run.nodes)} nodes read")
            run = msgspec.structs.replace(run, nodes=nodes)
        # The verdict is about the whole run, so it is not shown before the end.
        is_over = at_s >= self._last_s and not self._unread
        report = (self._whole if is_over else None) or self._report_at(at_s)
        nodes_now = self._values.nodes(run, newest, at_s)
        return Frame(report, nodes_now, None, tuple(notes), at_s)

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return the metrics of a GPU before the present moment."""
        described, read = self._run.node(node), self._nodes.get(node)
        if described is None or read is None or position >= len(described.devices):
            return ()
        device = described.devices[position].id
        rows = read.newest(device, self.at_s - self._offsets_s[node], KEPT)
        times = [row["elapsed_s"] for row in rows]
        return [Curve(metric, times, [row.get(metric) for row in rows]) for metric in CURVES]

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return None: a recording has no list of processes."""

    def close(self) -> None:
        """Do nothing."""

    @property
    def awaits_report(self) -> bool:
        """Return False: no report is awaited."""
        return False

    def _report_at(self, at_s: float) -> Report:
        if not self._is_summed:
            return self._so_far
        facts = facts_at(self._loaded.run, self._loaded.summary, at_s)
        return msgspec.structs.replace(self._so_far, facts=(*self._so_far.facts, *facts))

    def _report(self) -> None:
        self._is_summed = self._loaded.summary is not None
        self._whole = report_of(self._loaded)
