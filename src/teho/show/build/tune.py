"""The result of `teho tune` as a document: the verdict, the changes, and all trials."""

from __future__ import annotations

from pathlib import Path

from teho.experiment.figures import paces_of
from teho.experiment.wording import PIPELINE_CODE
from teho.model.document import Document, Fact, Item, Table, VerdictSeverity
from teho.model.tuned import Change, Settings, Tuned
from teho.show.build.layout import column, document, listing, table, three_digits
from teho.units import format_pace, many

__all__ = ["change_item", "tune_document"]

_SEVERITIES: dict[str, VerdictSeverity] = {
    "gain": "good",
    "no_gain": "remark",
    "unproved": "unknown",
}


def tune_document(tuned: Tuned) -> Document:
    """Lay out the changes that help, and all trials."""
    out = [
        Item(lead=_short(trial.settings), text=trial.why, severity="critical")
        for trial in tuned.trials
        if trial.why
    ]
    return document(
        title="teho tune",
        verdict=tuned.verdict,
        verdict_severity=_SEVERITIES[tuned.outcome],
        facts=_paces(tuned),
        tables=(_tried(tuned),),
        lists=(
            listing("changes", "Change", map(change_item, tuned.changes), "first"),
            listing("out", "Not measured", out),
        ),
        notes=tuned.notes,
    )


def _paces(tuned: Tuned) -> tuple[Fact, ...]:
    paces = paces_of(tuned)
    if paces is None or tuned.gain is None:
        return ()
    before, after = paces
    size = ", counted in steps of the old batch size" if "batch_size" in tuned.settings else ""
    speeds = f"{format_pace(before)} → {format_pace(after)} {many(tuned.unit)}/s{size}"
    return (Fact("paces", "", f"{speeds}, measured in {tuned.gain.pairs} pairs of runs"),)


def change_item(change: Change) -> Item:
    """Return a change of the program, with the place of its line."""
    return Item(
        lead=f"{_shown(change.file)}:{change.line}" if change.file else "",
        text=change.text if change.file else "",
        code=(change.set_to,),
        details=(change.remark,) if change.remark else (),
    )


def _shown(file: str) -> str:
    """Return a path relative to the working directory, if it is inside it."""
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file


def _tried(tuned: Tuned) -> Table:
    measured = [trial for trial in tuned.trials if trial.runs]
    decimals = three_digits(trial.steps_per_s or 1.0 for trial in measured)
    return table(
        "tried",
        "Tried",
        measured,
        column("pace", f"{many(tuned.unit)}/s", lambda one: one.steps_per_s, decimals=decimals),
        column("speed", "speed", lambda one: one.speed, decimals=2),
        column("waited", "waited %", lambda one: one.waited_percent, decimals=0),
        column("runs", "runs", lambda one: one.runs),
        column("settings", "settings", lambda one: _short(one.settings)),
    )


def _short(settings: Settings) -> str:
    words = (PIPELINE_CODE.get(name, f"{name}={value}") for name, value in settings.items())
    return " ".join(words) or "unchanged"
