"""Frames of a run that continues."""

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
from teho.explain.present import IdleGpus
from teho.explain.step import absent_hosts, node_ends_s, offset_s
from teho.model.document import Report
from teho.model.live import NodeNow
from teho.model.run import Node, Run, RunState
from teho.model.watched import WatchedProcess
from teho.observe.viewer import Viewer
from teho.process.parallel_map import ChildWork
from teho.show.loaded import LoadedRun
from teho.show.report_pause import REPORT_S, report_pause_s
from teho.show.top.frame import CURVES, KEPT, Curve, Frame, unjudged
from teho.show.top.reported import Reported, first_report, reported, used_cpu_s
from teho.store.layout import NODES
from teho.store.long_stays import LongStays
from teho.store.owner import owner_of
from teho.store.read import read_run, rows_of_node

__all__ = ["LiveSource"]

_FIRST_S = 0.3
_FEW_NODES = 8
"""The first frame waits for the report of at most this number of nodes."""
_AWAITED_S = 0.3
"""It waits for this time, if another process makes the report."""
_MANY_NODES, _NICE = 100, 5
"""From this number of nodes on, the first report needs many seconds, and lets others go first."""
_START_S, _STARTS_S = 60.0, 0.5
"""Nodes may begin to record after the viewer. For this long, the run is read this often."""
_ROWS_S = 2.0
"""After this time, a node that has begun has written its first rows."""
_SWITCH_S = 2e-4
_OLD_S = 60.0
"""What the report says about the last minute is not shown for longer."""
_ANSWER_S = 2.0
"""A frame that waits for the report waits for this time for an answer of the scheduler."""
_STUCK = frozenset({"run_stuck", "run_idle"})
"""Kinds of findings that are more important than what is wrong at this moment."""
_CHECK_S = 3.0
"""If no node has sent a sample for this time, the run may have ended."""
_STAYS_S = 5.0
"""Time between two readings of how long the main threads have stayed in their lines."""


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
        self._waits = waits
        # The other process begins while this one reads the run and loads the screen.
        self._first = None if waits else _first(directory, settings)
        self._owner = owner_of(directory)
        loaded = LoadedRun(directory, settings, running_traces=False)
        self._report: Report = unjudged(loaded, "Teho is making the report of the run so far.")
        self._watched: tuple[WatchedProcess, ...] = ()
        self._run: Run = loaded.run
        self._state = loaded.state
        self._pause_s = REPORT_S
        self._problem = ""
        """Why the report is not renewed."""
        self._reported_s = self._checked_s = time.monotonic()
        self._check_pause_s = _CHECK_S
        self._reporting = threading.Thread(target=self._renew, name="report", daemon=True)
        self._idle: IdleGpus | None = None
        """None: there is no report yet, which knows the time before the first sample."""
        self._input_wait = 0.0, ""
        """Monotonic time of the newest report, and a sentence about the time just before it."""
        self._is_judged = False
        self._stays = LongStays(directory, ())
        self._stays_read_s = time.monotonic()
        self._has_ended = self._is_final = False
        """Whether a report was made after the end of the run; whether it has all rows."""
        self._began_s = self._read_s = time.monotonic()
        self._asked_limit_s: float | None = None
        """The time limit that the scheduler reports, if the recording does not have one."""
        self._has_asked = False
        self._begin(loaded.run)
        self._viewer = Viewer(directory, loaded.run.nodes, absent_hosts(loaded.run))
        self._knows_end = False
        """Whether the viewer knows the end of the run."""
        self._values = NewestValues()
        self._seen: dict[tuple[str, str], deque[tuple[float, dict[str, float]]]] = defaultdict(
            lambda: deque(maxlen=KEPT)
        )
        self._curves_of: tuple[str, str] | None = None

    def _begin(self, run: Run) -> None:
        """Begin the first report, make it, or say when it is made."""
        is_early, is_small = not run.nodes and bool(absent_hosts(run)), len(run.nodes) <= _FEW_NODES
        self._awaited_s = 0.0
        if self._first is not None:
            self._awaited_s = _AWAITED_S if is_small else 0.0
            self._reporting = threading.Thread(
                target=self._await, args=(self._first,), name="report", daemon=True
            )
            self._reporting.start()
        elif not is_early and (self._waits or is_small):
            self._renew()
        else:
            # The report begins after the first frame, which it would delay.
            self._reported_s, self._pause_s = float("inf"), _ROWS_S if is_early else _FIRST_S
        if not self._waits and (is_early or not is_small):
            # While a thread makes a report, each sample that is received waits for Python's lock.
            sys.setswitchinterval(_SWITCH_S)

    def poll(self, *, reads_all: bool = False) -> None:
        """Take the samples that have come; begin a new report if it is time."""
        self._reported_s = min(self._reported_s, time.monotonic())
        if self._awaited_s:
            self._reporting.join(self._awaited_s)
            self._awaited_s = 0.0
        self.receive(reads_all=reads_all)
        self._ask_limit()
        if self._curves_of is not None:
            self._keep(*self._curves_of)
        if self._is_final or self._reporting.is_alive():
            return
        now_s = time.monotonic()
        is_due = now_s - self._reported_s >= self._pause_s or self._may_be_stuck(now_s)
        if is_due or (now_s - self._checked_s >= self._check_pause_s and self._has_stopped(now_s)):
            self._reporting = threading.Thread(
                target=self._renew, kwargs={"is_due": is_due}, name="report", daemon=True
            )
            self._reporting.start()

    def _may_be_stuck(self, now_s: float) -> bool:
        """Return whether the main threads have not moved for long, so that a report is needed now.

        Reports of many nodes are made seldom. A run that is stuck should not wait for the next one.
        """
        if self._pause_s <= REPORT_S or now_s - self._stays_read_s < _STAYS_S:
            return False
        self._stays_read_s = now_s
        return self._stays.have_grown()

    def _ask_limit(self) -> None:
        """Ask the scheduler once for a time limit that the variables of the job do not say."""
        run = self._run
        is_over = self._state is not RunState.RUNNING
        if self._has_asked or is_over or not run.nodes or run.limit_s is not None:
            return
        self._has_asked = True

        def ask() -> None:
            from teho.schedulers.job_end import asked_limit_s

            self._asked_limit_s = asked_limit_s(run, self._settings.home_directory)

        if any(node.allocation.job_id for node in run.nodes):
            asking = threading.Thread(target=ask, name="limit", daemon=True)
            asking.start()
            asking.join(_ANSWER_S if self._waits else 0.0)

    def _has_stopped(self, now_s: float) -> bool:
        """Return whether no node has sent a sample for some seconds."""
        return all(now_s - one.at_s > _CHECK_S for one in self._viewer.newest.values())

    def frame(self) -> Frame:
        """Return the present state."""
        run, newest = self._run, self._viewer.newest
        ended_s = self._ended_s(run)
        nodes = self._values.nodes(run, newest, time.monotonic(), ended_s)
        nodes += tuple(NodeNow(node=node, is_recorded=False) for node in _absent(run))
        notes = filter(None, (self._problem, self._viewer.problem))
        return Frame(
            self._report,
            nodes,
            run.limit_s or self._asked_limit_s,
            tuple(notes),
            owner=self._owner,
            ended_s=ended_s,
            alert=self._alert(run, nodes) if ended_s is None else "",
        )

    def _alert(self, run: Run, nodes: Sequence[NodeNow]) -> str:
        """Return what is wrong at this moment. A run that is stuck has this in its verdict."""
        if self._idle is None:
            return ""
        self._idle.add(nodes)
        if any(finding.kind in _STUCK for finding in self._report.findings):
            return ""
        if sentence := self._idle.sentence(run):
            return sentence
        judged_s, sentence = self._input_wait
        return "" if time.monotonic() - judged_s > _OLD_S else sentence

    def _ended_s(self, run: Run) -> float | None:
        """Return the end of the run, or the last sample if the end is unknown. None: it still runs.

        The values of a run that has ended stay on the screen, for as long as the user reads them.
        """
        if self._state is RunState.RUNNING:
            return None
        if run.end is not None:
            return run.end.elapsed_s
        moments = (
            received.sample.elapsed_s + offset_s(run, node)
            for node in run.nodes
            if (received := self._viewer.newest.get(node.name))
        )
        return max(moments, default=0.0)

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
        if self._first is not None:
            self._first.end()
        self._viewer.close()

    @property
    def awaits_report(self) -> bool:
        """Whether the first report is being made."""
        return not self._is_judged and self._reporting.is_alive()

    @property
    def is_complete(self) -> bool:
        """Whether all nodes of the job record."""
        return not absent_hosts(self._run)

    @property
    def has_begun(self) -> bool:
        """Whether a node of the job records."""
        return bool(self._run.nodes)

    def receive(self, *, reads_all: bool = False) -> None:
        """Take the samples that have come, and see which nodes have begun."""
        self._find_nodes()
        self._viewer.add(self._run.nodes)
        if self._run.end is not None and not self._knows_end:
            self._knows_end = True
            self._viewer.end(node_ends_s(self._run))
        self._viewer.poll(0.0, reads_all=reads_all)

    def make_report(self) -> None:
        """Make the report of the run so far, and wait for it."""
        self._renew()

    def _find_nodes(self) -> None:
        """Read the run again if some of its nodes have not begun yet."""
        now_s = time.monotonic()
        is_new = len(self._viewer.newest) > len(self._run.nodes)
        if now_s - self._began_s > _START_S or (now_s - self._read_s < _STARTS_S and not is_new):
            return
        self._read_s = now_s
        if self._state is not RunState.RUNNING or self.is_complete:
            return
        try:
            run = read_run(self._directory)
        except RecordingError:
            return  # the next report says why
        if len(run.nodes) > len(self._run.nodes):
            self._run = run
            self._reported_s, self._pause_s = now_s, min(self._pause_s, _ROWS_S)

    def _renew(self, *, is_due: bool = True) -> None:
        """Read the description again; if it is time or the run has ended, make a new report.

        Args:
            is_due: whether it is time for a new report, also if the run continues.
        """
        began_s = used_cpu_s()
        self._checked_s = time.monotonic()
        if is_due:
            self._reported_s = self._checked_s
        try:
            loaded = LoadedRun(self._directory, self._settings, running_traces=False)
            self._run, self._state = loaded.run, loaded.state
            self._check_pause_s = report_pause_s(used_cpu_s() - began_s, _CHECK_S)
            if not is_due and loaded.state is RunState.RUNNING:
                return
            made = reported(loaded)
        except RecordingError as error:  # somebody has deleted or moved the recording
            self._problem, self._pause_s = error.found, REPORT_S
            return
        self._take(made, used_cpu_s() - began_s)

    def _await(self, first: ChildWork[Reported]) -> None:
        """Wait for the first report, which another process makes."""
        try:
            made = first()
        except ChildProcessError:
            return  # the screen has been closed
        except RecordingError as error:
            self._problem = error.found
            return
        self._take(made, made.cpu_s)

    def _take(self, made: Reported, cpu_s: float) -> None:
        """Take a report that needed some CPU time."""
        self._problem = ""
        self._report = made.report
        self._watched = made.watched
        if self._idle is None:
            self._idle = IdleGpus(made.idle.limits, made.idle)
        self._input_wait = time.monotonic(), made.input_wait
        if made.mains != self._stays.mains:
            self._stays = LongStays(self._directory, made.mains)
        if made.state is not RunState.RUNNING:
            # The recorder of a node may write its last rows a moment after the end of the program.
            self._is_final = self._has_ended or all(node.sealed for node in made.run.nodes)
            self._has_ended = True
        self._pause_s = report_pause_s(cpu_s)
        self._is_judged = True

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


def _absent(run: Run) -> list[Node]:
    """Return the nodes of a job that have not begun to record."""
    return [
        Node(name=host, started_at=run.started_at, period_s=run.period_s)
        for host in absent_hosts(run)
    ]


def _first(directory: Path, settings: Settings) -> ChildWork[Reported] | None:
    """Begin the first report in another process; None: this is not possible, or it is too early."""
    count = sum(1 for _ in (directory / NODES).glob("*.json"))
    if not count:
        return None
    nice = _NICE if count >= _MANY_NODES else 0
    first = ChildWork(lambda: first_report(directory, settings), is_group=True, nice=nice)
    return first if first.has_child else None
