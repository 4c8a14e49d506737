"""The user's own part of each file system."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import DiskQuota, Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Severity, Threshold
from teho.model.missing import Missing

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "quota"
ABOUT = "how much of the quotas is used"
DECISIVE = False

_NEARLY = Threshold(90, "%", "Teho's own choice: what is left may not hold a job's checkpoints")
_FULL = Threshold(
    100,
    "%",
    "quota(1): at a hard limit nothing can be written; at a soft one, once its grace is over",
)


def check(snapshot: Snapshot) -> Outcome:
    """Look at space and files, as `quota` and `lfs quota` tell them."""
    if isinstance(snapshot.quotas, Missing):
        return unknown(snapshot.quotas.detail)
    shares = [
        (quota, what, used, limit)
        for quota in snapshot.quotas
        for what, used, limit in (
            ("bytes", quota.used_bytes, quota.limit_bytes),
            ("files", quota.used_files, quota.limit_files),
        )
        if limit
    ]
    if not shares:
        return moot("`quota` and `lfs quota` report no limit")
    found = [_found(*one) for one in shares if 100 * one[2] >= _NEARLY.value * one[3]]
    if found:
        return found
    most = max(100 * used / limit for _, _, used, limit in shares)
    return fine(f"{most:.0f} % at most of {len(snapshot.quotas)} file systems")


def _found(quota: DiskQuota, what: str, used: int, limit: int) -> Symptom:
    percent = 100 * used / limit
    full = percent >= _FULL.value
    unit = what if what == "bytes" else ""
    return symptom(
        ID,
        Severity.CRITICAL if full else Severity.WARNING,
        f"The quota on {quota.file_system} is {'used up' if full else 'nearly used up'}: "
        f"{percent:.0f} % of its {'space' if what == 'bytes' else 'files'}.",
        "Make room first, or write elsewhere: caches of pip, conda and models are the first to "
        "look at, `du -sh ~/.cache ~/.conda ~/.local`.",
        (f"{what} used", used, unit),
        (f"{what} allowed", limit, unit),
        thresholds=(_FULL if full else _NEARLY,),
    )
