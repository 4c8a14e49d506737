"""Logs to Trackio, with its package."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.model.document import Report
from teho.model.run import Run
from teho.show.trackers.tracker import PREFIX, Point, Tracker, Wish, facts_of, imported

__all__ = ["TRACKER"]


class Trackio(Tracker):
    """One run; the step of a value is the time in whole seconds."""

    package = "trackio"

    def __init__(self, run: Run, wish: Wish) -> None:
        self._trackio = imported(self.package)
        self._project = wish.project or "teho"
        self._run_id = run.id
        self._run = self._trackio.init(
            project=self._project,
            name=wish.into or run.name or run.id,
            resume="must" if wish.into else "never",
            # Trackio would log the machine of this command, not the nodes of the run.
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def add(self, points: Sequence[Point]) -> None:
        """Log values."""
        for point in points:
            self._run.log(point.values, step=round(point.elapsed_s))

    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Log the facts, the findings, and the files as an artefact."""
        numbers, words = facts_of(report)
        findings = {f"{PREFIX}finding/{one.kind}": one.sentence for one in report.findings}
        self._run.log({**numbers, **words, **findings})
        (folder,) = {path.parent for path in files.values()}
        self._run.log_artifact(str(folder), name=f"teho-{self._run_id}", type="report")
        self._trackio.finish()
        return f"`trackio show --project {shlex.quote(self._project)}` shows it"


TRACKER = Trackio
