"""Does this cluster still take jobs?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, warning
from teho.doctor.snapshot import Snapshot

__all__ = ["ABOUT", "check"]

ABOUT = "whether this cluster is retired"


def check(snapshot: Snapshot) -> Outcome:
    """Read the cluster's status in the catalogue."""
    cluster = snapshot.cluster
    if cluster is None:
        return not_applicable("Teho does not know this cluster")
    if cluster.status == "active":
        return fine(f"{cluster.title} is in operation, as of {cluster.verified_on}")
    when = f" since {cluster.retired_on}" if cluster.retired_on else ""
    follows = f" Its successor is {cluster.successor}." if cluster.successor else ""
    return warning(
        f"{cluster.title} is retired{when}.{follows}",
        f"Plan for the successor: `teho plan --cluster {cluster.successor}`."
        if cluster.successor
        else (
            "Ask the cluster's support for another cluster: `teho clusters` lists the clusters "
            "that Teho knows."
        ),
        ("checked on", str(cluster.verified_on), ""),
    )
