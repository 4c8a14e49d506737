"""The state of `teho always` as a document."""

from __future__ import annotations

from teho.model.always import Always
from teho.model.document import Document, Fact, Item, VerdictSeverity
from teho.show.build.layout import document, listing
from teho.units import counted, format_duration

__all__ = ["always_document"]


def always_document(found: Always) -> Document:
    """Lay out what is on, what was recorded, and what prevents recordings."""
    severity, verdict = _verdict(found)
    last = f"{found.last_at.astimezone():%Y-%m-%d %H:%M %Z}" if found.last_at else None
    limit = f"at most {found.keep_bytes / 1e9:g} GB, for {format_duration(found.keep_s)}"
    return document(
        title="teho always",
        verdict=verdict,
        verdict_severity=severity,
        facts=(
            Fact("state", "State", found.state),
            Fact("last", "Last recorded", last, note=found.last_id),
            Fact("recordings", "Recordings", found.recordings),
            Fact("used_bytes", "Size", found.used_bytes, "bytes", note=limit),
        ),
        lists=(
            listing(
                "problems",
                "Why jobs are not recorded",
                (Item(text=problem, severity="warning") for problem in found.problems),
            ),
            listing(
                "files",
                "Lines in your files",
                (
                    Item(text=hook.file, lead=hook.scheduler, code=hook.lines)
                    for hook in found.hooks
                    if found.state == "on"
                ),
                "why",
            ),
        ),
        commands=("teho jobs", "teho report last") if found.recordings else (),
    )


def _verdict(found: Always) -> tuple[VerdictSeverity, str]:
    who = " and ".join(dict.fromkeys(hook.scheduler for hook in found.hooks))
    if found.state == "off":
        kept = f" {counted(found.recordings, 'recording')} kept." if found.recordings else ""
        step = f" {found.next_step[0].upper()}{found.next_step[1:]}." if found.next_step else ""
        return "unknown", f"Off: jobs are recorded only with `teho run`.{kept}{step}"
    if found.problems:
        step = f" Solve the problems, then {found.next_step}." if found.next_step else ""
        state = "On" if found.state == "on" else "Partly on"
        who = who or "no scheduler"
        return "warning", f"{state} for {who}, but jobs may not be recorded.{step}"
    if found.next_step:
        return "remark", f"On: every {who} job from a new shell is recorded; {found.next_step}."
    return "good", f"On: every {who} job with a script of bash is recorded."
