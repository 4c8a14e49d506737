"""The verdict of a run for a list: the most important finding, and a few figures of the report."""

from __future__ import annotations

import contextlib
from pathlib import Path

from teho.config.settings import Settings, expanded
from teho.errors import RecordingError
from teho.model.document import Report
from teho.model.listed_run import Judged
from teho.model.run import Run
from teho.version import __version__

__all__ = ["judge_of", "judged", "judged_by"]

_MOST_BYTES = 4_000_000
"""A verdict needs all samples; for a larger recording, a list has no verdict."""
_NOT_JUDGED = Judged(severity="")


def judged(
    directory: Path, settings: Settings, run: Run | None, *, most_bytes: int = _MOST_BYTES
) -> Judged:
    """Return the verdict of a run; without words if the run continues or cannot be read.

    Args:
        directory: the recording.
        settings: the user's settings, for example for the thresholds.
        run: its description; None: it is damaged.
        most_bytes: size of the samples up to which the report is computed.
    """
    if run is None or run.end is None or _size_bytes(directory) > most_bytes:
        return _NOT_JUDGED
    from teho.show.loaded import LoadedRun

    try:
        report = LoadedRun(directory, settings, run).short_view
    except RecordingError:
        return _NOT_JUDGED
    return judged_by(report)


def judged_by(report: Report) -> Judged:
    """Return the figures of a report that a list shows."""
    facts = {fact.key: fact for fact in report.facts}

    def number(key: str) -> float | None:
        value = facts[key].value if key in facts else None
        return float(value) if isinstance(value, (int, float)) else None

    first = report.findings[0] if report.findings else None
    if report.verdict_severity in {"good", "unknown"}:
        words = "good" if report.verdict_severity == "good" else "not judged"
    else:
        words = first.kind.replace("_", " ") if first else "failed"
    cost = number("cost")
    return Judged(
        severity=report.verdict_severity,
        kind=first.kind if first else "",
        words=words,
        verdict=report.verdict,
        advice=first.action if first else "",
        gpu_busy_percent=number("gpu_busy_percent"),
        energy_j=number("gpu_energy_j"),
        cost=cost,
        cost_unit=facts["cost"].unit if cost is not None else "",
        unused_cost=number("cost_unused"),
        steps_per_s=number("steps_per_s"),
    )


def judge_of(thresholds: str) -> str:
    """Identify the rules and thresholds: another version may have another verdict."""
    import teho.explain

    folder = Path(teho.explain.__file__).parent
    # Without __pycache__, whose time changes when Python stores what it compiled.
    files = [*folder.glob("*.*"), *folder.glob("rules/*/*.py")]
    if thresholds:
        files.append(expanded(thresholds))
    newest = 0
    for file in files:
        with contextlib.suppress(OSError):
            newest = max(newest, file.stat().st_mtime_ns)
    return f"report {__version__} {newest} {thresholds}"


def _size_bytes(path: Path) -> int:
    """Return the size of what a report reads: samples, notes of the probe, and traces."""
    folders = ("samples", "live", "probe", "traces")
    files = (file for folder in folders for file in path.glob(f"{folder}/*"))
    with contextlib.suppress(OSError):
        return sum(file.stat().st_size for file in files)
    return _MOST_BYTES + 1
