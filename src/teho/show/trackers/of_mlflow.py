"""Logs to MLflow, with its package (`mlflow` or `mlflow-skinny`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.model.document import Report
from teho.model.run import Run
from teho.show.trackers.tracker import Point, Tracker, Wish, facts_of, imported, prose_of

__all__ = ["TRACKER"]

_MOST_METRICS = 1000
"""Largest number of metrics of one call that MLflow's servers accept."""
_MOST_LETTERS = 500
"""Letters of a tag; MLflow allows some thousand, but its page is not wide enough."""


class Mlflow(Tracker):
    """One run; the values have the time of the sample, and whole seconds as their step."""

    package = "mlflow"

    def __init__(self, run: Run, wish: Wish) -> None:
        self._mlflow = imported(self.package)
        self._entities = self._mlflow.entities
        self._client = self._mlflow.MlflowClient()
        self._began_s = run.started_at.timestamp()
        if wish.into:
            self._id = wish.into
        else:
            name = wish.project or "teho"
            found = self._client.get_experiment_by_name(name)
            experiment = found.experiment_id if found else self._client.create_experiment(name)
            begun = self._client.create_run(
                experiment, start_time=round(1000 * self._began_s), run_name=run.name or run.id,
            )  # fmt: skip
            self._id = begun.info.run_id
        self._is_own = not wish.into

    def add(self, points: Sequence[Point]) -> None:
        """Log values, in as few calls as MLflow allows."""
        metrics = [
            self._entities.Metric(
                name, value, round(1000 * (self._began_s + point.elapsed_s)), round(point.elapsed_s)
            )
            for point in points
            for name, value in point.values.items()
        ]
        for place in range(0, len(metrics), _MOST_METRICS):
            self._client.log_batch(self._id, metrics=metrics[place : place + _MOST_METRICS])

    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Log the findings as the note of the run, the facts, and the files as artefacts."""
        numbers, words = facts_of(report)
        self.add([Point(0.0, numbers)])
        # Not parameters, which MLflow does not let change when a run is logged again.
        tags = [self._entities.RunTag(key, value[:_MOST_LETTERS]) for key, value in words.items()]
        self._client.log_batch(self._id, tags=tags)
        if self._is_own:
            self._client.set_tag(self._id, "mlflow.note.content", prose_of(report))
        for path in files.values():
            self._client.log_artifact(self._id, str(path), "teho")
        if self._is_own:
            self._client.set_terminated(self._id)
        return f"MLflow's run is {self._id}, in {self._mlflow.get_tracking_uri()}"


TRACKER = Mlflow
