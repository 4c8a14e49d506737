"""Is the node's clock synchronised?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, remark, unknown
from teho.doctor.snapshot import Snapshot
from teho.model.missing import Missing

__all__ = ["ABOUT", "check"]

ABOUT = "whether the node's clock is synchronised"


def check(snapshot: Snapshot) -> Outcome:
    """Judge what the kernel reports: adjtimex(2)."""
    clock = snapshot.clock
    if isinstance(clock, Missing):
        return unknown(clock.detail)
    if clock.is_synchronised:
        return fine(f"the clock is synchronised, within {clock.error_s:.3g} s")
    return remark(
        "The kernel reports that this node's clock is not synchronised. So times in the logs of "
        "several nodes may differ, and servers may refuse certificates.",
        "Report this to the administrator; on your own machine, run `timedatectl set-ntp true`.",
        ("possible error", clock.error_s, "s"),
    )
