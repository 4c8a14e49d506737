"""Adds the time in the queue to a comparison of whole runs."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from teho.experiment.figures import variant_figures
from teho.model.compared import Compared, FromSubmission, Point
from teho.model.plan import PastJob
from teho.schedulers.history import wait_of_same_size

__all__ = ["has_whole_runs", "with_queue"]


def has_whole_runs(compared: Compared) -> bool:
    """Return whether the times of whole runs were compared: a step rate has no end."""
    return any(point.comparison and point.measure == "time" for point in compared.points)


def with_queue(compared: Compared, cluster: str, jobs: Sequence[PastJob]) -> Compared:
    """Return a comparison with the time from submission to result, if it is known.

    Args:
        compared: the comparison.
        cluster: title of the cluster on which the runs were measured.
        jobs: past jobs of the user on this cluster.
    """
    points = tuple(
        replace(point, from_submission=_from_submission(point, cluster, jobs))
        for point in compared.points
    )
    return replace(compared, points=points)


def _from_submission(point: Point, cluster: str, jobs: Sequence[PastJob]) -> FromSubmission | None:
    if point.comparison is None or point.measure != "time":
        return None
    by_name = {one.name: one for one in point.variants}
    larger, smaller = by_name[point.comparison.larger], by_name[point.comparison.smaller]
    waits = [wait_of_same_size(jobs, gpus=one.gpus, cores=one.cores) for one in (larger, smaller)]
    if waits[0] is None or waits[1] is None:
        return None
    return FromSubmission(
        cluster=cluster,
        larger_wait=waits[0],
        smaller_wait=waits[1],
        larger_s=waits[0].median_s + 1 / variant_figures(larger, is_pace=False).rate_per_s,
        smaller_s=waits[1].median_s + 1 / variant_figures(smaller, is_pace=False).rate_per_s,
    )
