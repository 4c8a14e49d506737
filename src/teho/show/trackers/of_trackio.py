"""Logs to Trackio, with its package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teho.model.document import Report
from teho.model.run import Run
from teho.show.trackers.tracker import PREFIX, Tracker, Wish, facts_of, imported

__all__ = ["TRACKER"]


class Trackio(Tracker):
    """One run; the step of a value is the time in whole seconds."""

    package = "trackio"

    def __init__(self, run: Run, wish: Wish) -> None:
        self._trackio: Any = imported(self.package)
        self._project = wish.project or "teho"
        self._run = self._trackio.init(
            project=self._project,
            name=wish.into or run.name or run.id,
            resume="must" if wish.into else "never",
            config={"teho_run": run.id},
        )

    def add(self, elapsed_s: float, values: Mapping[str, float]) -> None:
        """Log the values of one time."""
        self._run.log(dict(values), step=round(elapsed_s))

    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Log the facts and the findings; Trackio has no artefacts of a run."""
        numbers, words = facts_of(report)
        findings = {f"{PREFIX}finding/{one.kind}": one.sentence for one in report.findings}
        self._run.log({**numbers, **words, **findings})
        self._run.finish()
        return f"`trackio show --project {self._project}` shows it"


TRACKER = Trackio
