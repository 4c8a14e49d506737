"""What a copy should not do although it can: many small files, and more than the quota."""

from __future__ import annotations

from collections.abc import Iterator

from teho.doctor.files import read_quotas
from teho.doctor.snapshot import DiskQuota
from teho.model.finding import Evidence, Finding, Severity, Threshold
from teho.stage.location import Location
from teho.units import counted, format_bytes

__all__ = ["many_small_files", "over_quota", "quotas_of"]


def many_small_files(
    count: int,
    total_bytes: int,
    file_system: str,
    thresholds: tuple[Threshold, Threshold],
    *,
    is_archive: bool,
) -> Finding:
    """Return the warning about many small files.

    Args:
        count: number of files.
        total_bytes: their size.
        file_system: of the destination; empty: not known.
        thresholds: with which they were compared.
        is_archive: whether they are packed.
    """
    mean = total_bytes / count
    kind = file_system or "a file system that is not known"
    return Finding(
        kind="many_small_files",
        severity=Severity.WARNING,
        sentence=f"{count:,} files are small (mean size {format_bytes(mean)}). On {kind}, each "
        "file needs requests to a server that all users share, so reading small files is slow.",
        evidence=(Evidence("files", count), Evidence("mean size", mean, "bytes")),
        thresholds=thresholds,
        action="`teho stage` packs these files into one archive. To copy the files as they are, "
        "add `--no-archive`."
        if is_archive
        else "Leave out `--no-archive`: then `teho stage` packs these files into one archive.",
    )


def quotas_of(place: Location) -> list[DiskQuota]:
    """Return the user's quotas on the file system of a place."""
    names = {place.folder.mounted_on, place.device}
    found = (quota for text in place.quotas for quota in read_quotas(text))
    return [quota for quota in found if quota.file_system in names]


def over_quota(place: Location, more_bytes: int, more_files: int) -> Iterator[Finding]:
    """Yield a warning for each quota that the copy exceeds.

    Args:
        place: the destination.
        more_bytes: size of the copy.
        more_files: number of files and links that it makes.
    """
    for quota in quotas_of(place):
        for what, used, limit, more, unit in (
            ("space", quota.used_bytes, quota.limit_bytes, more_bytes, "bytes"),
            ("files", quota.used_files, quota.limit_files, more_files, ""),
        ):
            if not limit or used + more <= limit:
                continue
            left = max(0, limit - used)
            yield Finding(
                kind="quota",
                severity=Severity.WARNING,
                sentence=f"The copy needs {_amount(more, unit)}, but your quota of {what} on "
                f"{quota.file_system} leaves only {_amount(left, unit)}.",
                evidence=(Evidence("used", used, unit), Evidence("allowed", limit, unit)),
                thresholds=(),
                action="Delete files there, or choose another DEST.",
            )


def _amount(value: float, unit: str) -> str:
    return format_bytes(value) if unit else counted(int(value), "file")
