"""How much of the user's quotas is used?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, critical, fine, not_applicable, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.model.doctor import Symptom
from teho.model.finding import Threshold
from teho.model.missing import Missing
from teho.units import counted

__all__ = ["ABOUT", "check"]

ABOUT = "how much of the quotas is used"

_NEARLY = Threshold(90, "%", "Teho's own choice: the free space may be too small for checkpoints")
_FULL = Threshold(
    100,
    "%",
    "manual page quota(1): writing fails at the hard limit, and at the soft limit after the "
    "grace period",
)


def check(snapshot: Snapshot) -> Outcome:
    """Judge space and files as `quota` and `lfs quota` report them."""
    if isinstance(snapshot.quotas, Missing):
        return unknown(snapshot.quotas.detail)
    found: list[Symptom] = []
    percents: list[float] = []
    for quota in snapshot.quotas:
        for what, unit, used, limit in (
            ("space", "bytes", quota.used_bytes, quota.limit_bytes),
            ("files", "", quota.used_files, quota.limit_files),
        ):
            if not limit:
                continue
            percent = 100 * used / limit
            percents.append(percent)
            if percent < _NEARLY.value:
                continue
            is_full = percent >= _FULL.value
            found.append(
                (critical if is_full else warning)(
                    f"The quota on {quota.file_system} is "
                    f"{'used up' if is_full else 'nearly used up'}: {percent:.0f} % of the allowed "
                    f"{what} {'is' if what == 'space' else 'are'} used.",
                    "Delete files, or write to another file system. Look at caches first: "
                    "`du -sh ~/.cache ~/.conda ~/.local`.",
                    (f"{what} used", used, unit),
                    (f"{what} allowed", limit, unit),
                    thresholds=(_FULL if is_full else _NEARLY,),
                )
            )
    if not percents:
        return not_applicable("`quota` and `lfs quota` report no limit")
    return found or fine(
        f"{counted(len(snapshot.quotas), 'file system')} checked; at most "
        f"{max(percents):.0f} % of a quota is used"
    )
