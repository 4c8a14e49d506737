"""Frames of a run that goes on."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

from teho.config.settings import Settings
from teho.errors import RecordingError
from teho.explain.now import NewestValues
from teho.model.document import Report
from teho.model.run import Run, RunState
from teho.model.watched import WatchedProcess
from teho.observe.viewer import Viewer
from teho.show.loaded import LoadedRun
from teho.show.report_pause import REPORT_S, report_pause_s
from teho.show.top.frame import CURVES, KEPT, Curve, Frame, report_of, unjudged
from teho.store.read import rows_of_node

__all__ = ["LiveSource"]

_FIRST_S = 0.3
_FEW_NODES = 8
"""The report of at most this number of nodes is made before the first frame."""
_SWITCH_S = 2e-4


class LiveSource:
    """Watches a run: its samples at once, its report when the recording has new rows.

    Args:
        directory: the recording.
        settings: the user's settings.
        waits: whether the first frame has the report of many nodes too, which takes seconds.
    """

    def __init__(self, directory: Path, settings: Settings, *, waits: bool = True) -> None:
        self._directory = directory
        self._settings = settings
        loaded = LoadedRun(directory, settings)
        self._report: Report = unjudged(loaded, "Teho is making the report of the run so far.")
        self._watched: tuple[WatchedProcess, ...] = ()
        self._run: Run = loaded.run
        self._state = loaded.state
        self._pause_s = REPORT_S
        self._problem = ""
        """Why the report is not renewed."""
        self._reported_s = time.monotonic()
        self._reporting = threading.Thread(target=self._renew, name="report", daemon=True)
        self._is_judged = False
        if waits or len(loaded.run.nodes) <= _FEW_NODES:
            self._renew()
        else:
            # The report begins after the first frame, which it would delay.
            self._reported_s, self._pause_s = float("inf"), _FIRST_S
            # While a thread makes a report, each sample that is received waits for Python's lock.
            sys.setswitchinterval(_SWITCH_S)
        self._viewer = Viewer(directory, loaded.run.nodes)
        self._values = NewestValues()
        self._seen: dict[tuple[str, str], deque[tuple[float, dict[str, float]]]] = defaultdict(
            lambda: deque(maxlen=KEPT)
        )
        self._curves_of: tuple[str, str] | None = None

    def poll(self, *, reads_all: bool = False) -> None:
        """Take the samples that have come; begin a new report if it is time."""
        self._reported_s = min(self._reported_s, time.monotonic())
        self._viewer.add(self._run.nodes)
        self._viewer.poll(0.0, reads_all=reads_all)
        if self._curves_of is not None:
            self._keep(*self._curves_of)
        is_over = self._state is not RunState.RUNNING
        is_due = time.monotonic() - self._reported_s >= self._pause_s
        if is_due and not (is_over and self._is_judged) and not self._reporting.is_alive():
            self._reported_s = time.monotonic()
            self._reporting = threading.Thread(target=self._renew, name="report", daemon=True)
            self._reporting.start()

    def frame(self) -> Frame:
        """Return the present state."""
        nodes = self._values.nodes(self._run, self._viewer.newest, time.monotonic())
        notes = filter(None, (self._problem, self._viewer.problem))
        return Frame(self._report, nodes, self._run.limit_s, tuple(notes))

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return the metrics of a GPU over the last minutes."""
        described = self._run.node(node)
        if described is None or position >= len(described.devices):
            return ()
        place = (node, described.devices[position].id)
        if self._curves_of != place:
            self._curves_of = place
            self._load(*place)
            self._keep(*place)
        samples = list(self._seen[place])
        times = [elapsed_s for elapsed_s, _ in samples]
        return [
            Curve(metric, times, [values.get(metric) for _, values in samples]) for metric in CURVES
        ]

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return what the probe recorded of a process, as far as it is in the recording."""
        found = [one for one in self._watched if one.node == node and one.pid == pid]
        return found[-1] if found else None

    def close(self) -> None:
        """End watching."""
        self._viewer.close()

    def _renew(self) -> None:
        began_s = time.thread_time()
        try:
            loaded = LoadedRun(self._directory, self._settings)
            report = report_of(loaded)
        except RecordingError as error:  # somebody has deleted or moved the recording
            self._problem, self._pause_s = error.found, REPORT_S
            return
        self._problem = ""
        self._run, self._state, self._report = loaded.run, loaded.state, report
        self._watched = loaded.processes
        self._is_judged = True
        self._pause_s = report_pause_s(time.thread_time() - began_s)

    def _load(self, node: str, device: str) -> None:
        """Read what the recording has of a GPU."""
        kept = self._seen[node, device]
        kept.clear()
        rows = rows_of_node(self._directory, node, "gpu", ["elapsed_s", *CURVES], [])
        if rows is None or device not in rows.places:
            return
        for row in rows.of(device).slice(max(0, len(rows.of(device)) - KEPT)).to_pylist():
            values = {metric: row[metric] for metric in CURVES if row[metric] is not None}
            kept.append((row["elapsed_s"], values))

    def _keep(self, node: str, device: str) -> None:
        received = self._viewer.newest.get(node)
        if received is None:
            return
        kept = self._seen[node, device]
        if kept and received.sample.elapsed_s <= kept[-1][0] + 0.01:
            return
        for row in received.sample.rows:
            if row["device"] == device:
                values = {metric: row[metric] for metric in CURVES if metric in row}
                kept.append((received.sample.elapsed_s, values))
