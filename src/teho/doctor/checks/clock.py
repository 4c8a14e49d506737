"""The node's clock is kept right."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.model.finding import Severity
from teho.model.missing import Missing

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "clock"
ABOUT = "whether the node's clock is kept right"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Ask the kernel: adjtimex(2)."""
    clock = snapshot.clock
    if isinstance(clock, Missing):
        return unknown(clock.detail)
    if clock.is_synchronised:
        return fine(f"kept right, within {clock.error_s:.3g} s")
    return [
        symptom(
            ID,
            Severity.REMARK,
            "The kernel reports that this node's clock is not synchronised: logs of several nodes "
            "may not agree, and certificates and tokens may be refused.",
            "Report it to the administrator; on a machine of your own, `timedatectl set-ntp true`.",
            ("possible error", clock.error_s, "s"),
        )
    ]
