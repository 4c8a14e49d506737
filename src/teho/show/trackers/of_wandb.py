"""Logs to Weights & Biases, with its package."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.errors import InputError
from teho.model.document import Report
from teho.model.run import Run
from teho.show.trackers.tracker import PREFIX, Point, Tracker, Wish, facts_of, imported, prose_of

__all__ = ["TRACKER"]

_TIME = f"{PREFIX}elapsed_s"
_OFFLINE = ("offline", "dryrun")
"""Values of the setting `mode`."""


class Wandb(Tracker):
    """One run; the values have the time after the start of the program as their step."""

    package = "wandb"

    def __init__(self, run: Run, wish: Wish) -> None:
        self._wandb = imported(self.package)
        if wish.into and self._wandb.setup().settings.mode in _OFFLINE:
            raise InputError(
                "--into: W&B is offline, and cannot add to an existing run",
                next_step="run this command on a node with a network, without WANDB_MODE=offline",
            )
        self._is_own = not wish.into
        self._run = self._wandb.init(
            project=wish.project or os.environ.get("WANDB_PROJECT") or "teho",
            id=wish.into or None,
            resume="must" if wish.into else None,
            name=None if wish.into else run.name or run.id,
            job_type=None if wish.into else "teho",
            # The package would log the machine and the output of this command.
            settings=self._wandb.Settings(x_disable_stats=True, console="off"),
        )
        self._run_id = run.id
        self._run.define_metric(_TIME, hidden=True)
        self._run.define_metric(f"{PREFIX}*", step_metric=_TIME)

    def add(self, points: Sequence[Point]) -> None:
        """Log values."""
        for point in points:
            self._run.log({_TIME: point.elapsed_s, **point.values})

    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Log the findings as a table, the facts as the summary, and the files as an artefact."""
        numbers, words = facts_of(report)
        self._run.summary.update({**numbers, **words})
        if self._is_own:
            self._run.notes = prose_of(report)
        rows = [[one.severity.value, one.sentence, one.action] for one in report.findings]
        columns = ["severity", "finding", "advice"]
        self._run.log({f"{PREFIX}findings": self._wandb.Table(columns=columns, data=rows)})
        artifact = self._wandb.Artifact(f"teho-{self._run_id}", type="report")
        for name, path in files.items():
            artifact.add_file(str(path), name=name)
        self._run.log_artifact(artifact)
        folder, url = self._run.dir, self._run.url
        self._run.finish()
        if url:
            return f"The run is on {url}"
        return f"`wandb sync {Path(folder).parent}` uploads the run, from a node with a network"


TRACKER = Wandb
