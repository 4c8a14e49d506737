"""This cluster still takes jobs."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "retired-cluster"
ABOUT = "whether this cluster is retired"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Look it up in the catalogue."""
    cluster = snapshot.cluster
    if cluster is None:
        return moot("this is not a cluster that Teho knows")
    if cluster.status == "active":
        return fine(f"{cluster.title}, as of {cluster.verified_on}")
    when = f" since {cluster.retired_on}" if cluster.retired_on else ""
    follows = f" Its successor is {cluster.successor}." if cluster.successor else ""
    return [
        symptom(
            ID,
            Severity.WARNING,
            f"{cluster.title} is retired{when}.{follows}",
            f"`teho plan --cluster {cluster.successor}`"
            if cluster.successor
            else "Ask the site where its users go: `teho clusters` lists those that Teho knows.",
            ("known as of", str(cluster.verified_on), ""),
        )
    ]
