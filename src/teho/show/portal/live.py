"""Watches runs that continue, and keeps their newest samples for all browsers that show them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from teho.errors import RecordingError, TehoError
from teho.explain.now import NewestValues, total_power_w
from teho.model.listed_run import ListedRun
from teho.model.live import NodeNow
from teho.model.run import Run, RunState
from teho.observe.viewer import Viewer
from teho.show.build.top import now_tables, process_tables
from teho.show.html.tables import html_tables
from teho.store.read import read_run, run_state
from teho.units import format_duration, format_quantity

__all__ = ["CURVES", "Event", "Live", "PageNow", "Watched"]

_GPU_CURVES = (
    "gpu_busy_percent",
    "gpu_sm_active_percent",
    "gpu_memory_used_bytes",
    "gpu_power_w",
)
_NODE_CURVES = ("job_cpu_s", "job_memory_bytes")
CURVES = (*_GPU_CURVES, *_NODE_CURVES)
"""Metrics of each GPU, and of each node, that are drawn during the run."""
_PERIOD_S = 1.0
_DESCRIBED_S = 5.0
"""Time until the description is read again: nodes can join, and the run can end."""
_UNWATCHED_S = 20.0
"""A run that no browser has asked for in this time is not watched any more."""
_KEPT = 600
"""Samples for a browser that comes later."""
_MOST_GPUS = 64
"""GPUs, and nodes, of one page, which a browser has to draw every second."""
_MOST_PROCESSES = 20
MOST_RUNS = 50
"""Runs that are watched at the same time."""


class Event(msgspec.Struct, frozen=True):
    """A sample of all GPUs and nodes, with its number."""

    number: int
    data: bytes
    """JSON."""


class _Sample(msgspec.Struct, frozen=True, kw_only=True):
    elapsed_s: float
    values: dict[str, list[float | None]]
    """Metric -> the value of each GPU or node; None: missing or old."""


class PageNow(msgspec.Struct, frozen=True, kw_only=True):
    """What the page of a run shows of the present moment."""

    tables: str
    """HTML."""
    gpus: list[str]
    """Name of each GPU."""
    facts: Mapping[str, str]
    """Figures as text. A figure that is not known is left out."""


class _Newest(msgspec.Struct, frozen=True, kw_only=True):
    """The newest values of a run."""

    nodes: Sequence[NodeNow] = ()
    """The first nodes, with the GPUs that a page shows."""
    facts: dict[str, str] = {}
    ended: bool = False

    def for_page(self) -> PageNow:
        """Return what the page of the run shows.

        The home page of many runs shows no tables, so they are made only for the page of a run.
        """
        # The portal shows no users: docs/decisions/live-only-values.md has the reason.
        processes = process_tables(self.nodes, None, _MOST_PROCESSES)
        return PageNow(
            tables=html_tables([*now_tables(self.nodes), *processes]),
            gpus=_labels(self.nodes),
            facts=self.facts,
        )


class Watched:
    """One run.

    Args:
        directory: the recording.

    Raises:
        RecordingError: it cannot be read.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._run: Run = read_run(directory)
        self._described_s = time.monotonic()
        self._viewer = Viewer(directory, self._run.nodes)
        self._values = NewestValues()
        self._events: deque[Event] = deque(maxlen=_KEPT)
        self._seen_s = -1.0
        self.newest = _Newest()
        self._aged_s: tuple[float, float] | None = None
        """Age of the values at the newest poll, at most, and the monotonic time of this poll."""
        self.wanted_s = time.monotonic()
        """When a browser last asked for this run."""

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.newest.ended

    def poll(self) -> None:
        """Take the samples that have come."""
        if self.ended:
            return
        now_s = time.monotonic()
        if now_s - self._described_s >= _DESCRIBED_S:
            self._described_s = now_s
            with contextlib.suppress(RecordingError):
                self._run = read_run(self._directory)
                self._viewer.add(self._run.nodes)
            if run_state(self._run, self._directory) is not RunState.RUNNING:
                self.newest = msgspec.structs.replace(self.newest, ended=True)
                return
        self._viewer.poll(0.0)
        now_s = time.monotonic()
        nodes = self._values.nodes(self._run, self._viewer.newest, now_s)
        age_s = _age_s(nodes)
        self._aged_s = None if age_s is None else (age_s, now_s)
        elapsed_s = max((node.elapsed_s for node in nodes if node.elapsed_s), default=0.0)
        shown = _first_gpus(nodes)
        if elapsed_s > self._seen_s:
            self._seen_s = elapsed_s
            sample = _Sample(elapsed_s=round(elapsed_s, 2), values=_curves(shown))
            # The number is a time, so that it also rises if the portal is started again.
            number = max(time.time_ns() // 1_000_000, self._number + 1)
            self._events.append(Event(number, msgspec.json.encode(sample)))
        self.newest = _Newest(nodes=shown, facts=_facts(self._run, nodes, elapsed_s, age_s))

    def facts(self, now_s: float) -> dict[str, str]:
        """Return the figures of the present moment, with their age at this monotonic time."""
        facts = self.newest.facts
        if self._aged_s is None:
            return facts
        age_s, polled_s = self._aged_s
        return {**facts, "age": format_duration(age_s + now_s - polled_s)}

    @property
    def _number(self) -> int:
        return self._events[-1].number if self._events else 0

    def after(self, number: int) -> list[Event]:
        """Return the samples after the one with this number."""
        self.wanted_s = time.monotonic()
        return [event for event in tuple(self._events) if event.number > number]

    def close(self) -> None:
        """End watching."""
        self._viewer.close()


class Live:
    """All runs that browsers watch; one thread receives their samples."""

    def __init__(self) -> None:
        self._watched: dict[Path, Watched] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.rounds = 0
        """How many times the samples of all runs were taken."""

    def watch(self, directory: Path) -> Watched | None:
        """Return a run that is watched from now on; None if too many runs are.

        Raises:
            RecordingError: it cannot be read.
        """
        with self._lock:
            known = self._watched.get(directory)
            if known is None and len(self._watched) < MOST_RUNS:
                known = self._watched[directory] = Watched(directory)
                known.poll()
            if known is not None:
                known.wanted_s = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._receive, name="live", daemon=True)
                self._thread.start()
            return known

    def facts_of(
        self, runs: Sequence[ListedRun], within_s: float = float("inf")
    ) -> dict[str, dict[str, str]]:
        """Watch runs, and return their figures of the present moment by their ids.

        Args:
            runs: the runs.
            within_s: runs for which there is no time left are not in the answer.
        """
        found = {}
        end_s = time.monotonic() + within_s
        for run in runs:
            if time.monotonic() > end_s:
                break
            with contextlib.suppress(TehoError):
                watched = self.watch(Path(run.directory))
                if watched is not None:
                    found[run.id] = watched.facts(time.monotonic())
        return found

    def close(self) -> None:
        """End watching, and give all leases back."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(5.0)
        with self._lock:
            for one in self._watched.values():
                one.close()
            self._watched.clear()

    def _receive(self) -> None:
        while not self._stopped.wait(_PERIOD_S):
            with self._lock:
                now_s = time.monotonic()
                for directory, one in list(self._watched.items()):
                    if now_s - one.wanted_s > _UNWATCHED_S:
                        one.close()
                        del self._watched[directory]
                        continue
                    with contextlib.suppress(OSError, RecordingError):
                        one.poll()
            self.rounds += 1


def _first_gpus(nodes: Sequence[NodeNow]) -> list[NodeNow]:
    """Return the first nodes, with at most as many GPUs as a page shows."""
    shown: list[NodeNow] = []
    left = _MOST_GPUS
    for node in nodes[:_MOST_GPUS]:
        shown.append(msgspec.structs.replace(node, gpus=node.gpus[:left]))
        left = max(0, left - len(node.gpus))
    return shown


def _labels(nodes: Sequence[NodeNow]) -> list[str]:
    several = len(nodes) > 1
    return [
        f"{node.node.name} GPU {gpu.position}" if several else f"GPU {gpu.position}"
        for node in nodes
        for gpu in node.gpus
    ]


def _curves(nodes: Sequence[NodeNow]) -> dict[str, list[float | None]]:
    found = {
        metric: [_number(node, gpu.values.get(metric)) for node in nodes for gpu in node.gpus]
        for metric in _GPU_CURVES
    }
    found |= {metric: _of_nodes(nodes, metric) for metric in _NODE_CURVES}
    return {name: values for name, values in found.items() if {*values} - {None}}


def _of_nodes(nodes: Sequence[NodeNow], metric: str) -> list[float | None]:
    return [_number(node, node.values.get(metric)) for node in nodes]


def _number(node: NodeNow, value: object) -> float | None:
    is_known = isinstance(value, (int, float)) and not node.is_silent
    return float(f"{value:.5g}") if is_known else None


def _age_s(nodes: Sequence[NodeNow]) -> float | None:
    """Return the age of the oldest values, at most; None if there are no values.

    A sample that came over a connection waited for up to one period until it was read.
    """
    ages_s = [
        node.age_s + (_PERIOD_S if node.way == "connection" else 0.0)
        for node in nodes
        if node.age_s is not None
    ]
    return max(ages_s, default=None)


def _facts(
    run: Run, nodes: Sequence[NodeNow], elapsed_s: float, age_s: float | None
) -> dict[str, str]:
    """Return the figures of the present moment as text; a figure that is not known is left out."""
    busy = [
        value
        for node in nodes
        for gpu in node.gpus
        if (value := _number(node, gpu.values.get("gpu_busy_percent"))) is not None
    ]
    with_gpus = [node for node in nodes if node.gpus]
    powers_w = [power_w for node in with_gpus if (power_w := total_power_w(node)) is not None]
    facts = {"elapsed": format_duration(elapsed_s)} if elapsed_s else {}
    if busy:
        facts["busy"] = format_quantity(fmean(busy), "%")
    if powers_w and len(powers_w) == len(with_gpus):
        facts["power"] = format_quantity(sum(powers_w), "W")
    for key, metric, unit in (
        ("cores", "job_cpu_s", "cores"),
        ("memory", "job_memory_bytes", "bytes"),
    ):
        known = [value for value in _of_nodes(nodes, metric) if value is not None]
        if known and len(known) == len(nodes):
            facts[key] = format_quantity(sum(known), unit)
    if run.limit_s:
        facts["left"] = format_duration(max(0.0, run.limit_s - elapsed_s))
    if age_s is not None:
        facts["age"] = format_duration(age_s)
    return facts
