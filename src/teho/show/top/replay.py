"""Frames of a finished run, as they were."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

import msgspec

from teho.config.settings import Settings
from teho.explain.now import NewestValues
from teho.model.document import Report
from teho.model.live import LiveSample
from teho.model.watched import WatchedProcess
from teho.observe.viewer import Received
from teho.show.loaded import LoadedRun
from teho.show.top.frame import CURVES, KEPT, Curve, Frame
from teho.store.read import samples_of_node

__all__ = ["ReplaySource"]


class ReplaySource:
    """Plays a recording.

    Args:
        directory: the recording.
        settings: the user's settings.
        speed: seconds of the run for each second.
    """

    def __init__(self, directory: Path, settings: Settings, speed: float) -> None:
        loaded = LoadedRun(directory, settings)
        self._run = loaded.run
        self._whole: Report = loaded.view_with(plots=False)
        self._speed = speed
        self._samples = {
            node.name: samples_of_node(directory, node.name) for node in loaded.run.nodes
        }
        self._times = {
            name: [sample.elapsed_s for sample in samples]
            for name, samples in self._samples.items()
        }
        self._last_s = max((times[-1] for times in self._times.values() if times), default=0.0)
        self._values = NewestValues()
        self._began_s = time.monotonic()

    @property
    def at_s(self) -> float:
        """Moment of the run that is shown, in seconds after the start of the program."""
        return min(self._last_s, (time.monotonic() - self._began_s) * self._speed)

    def poll(self) -> None:
        """Do nothing: the time goes on by itself."""

    def frame(self) -> Frame:
        """Return the state at the present moment of the replay."""
        at_s = self.at_s
        newest: dict[str, Received] = {}
        for name, samples in self._samples.items():
            count = bisect_right(self._times[name], at_s)
            if count:
                before = samples[count - 2] if count > 1 else None
                sample = samples[count - 1]
                newest[name] = Received(sample, sample.elapsed_s, before, "recording")
        nodes = self._values.nodes(self._run, newest, at_s)
        # The verdict is about the whole run, so it is not shown before the end.
        report = self._whole if at_s >= self._last_s else _so_far(self._whole)
        return Frame(report, nodes, None, (f"replay at {self._speed:g} times the speed",))

    def curves(self, node: str, position: int) -> Sequence[Curve]:
        """Return the metrics of a GPU before the present moment."""
        described = self._run.node(node)
        if described is None or position >= len(described.devices):
            return ()
        device = described.devices[position].id
        shown: list[LiveSample] = self._samples[node][: bisect_right(self._times[node], self.at_s)]
        rows = [
            (sample.elapsed_s, row)
            for sample in shown[-KEPT:]
            for row in sample.rows
            if row["device"] == device
        ]
        times = [elapsed_s for elapsed_s, _ in rows]
        return [Curve(metric, times, [row.get(metric) for _, row in rows]) for metric in CURVES]

    def process(self, node: str, pid: int) -> WatchedProcess | None:
        """Return None: a recording has no list of processes."""

    def close(self) -> None:
        """Do nothing."""


def _so_far(report: Report) -> Report:
    return msgspec.structs.replace(
        report,
        verdict="The replay shows the values of the recording. The verdict follows at the end.",
        verdict_severity="unknown",
        findings=(),
        facts=tuple(fact for fact in report.facts if fact.key == "job_id"),
    )
