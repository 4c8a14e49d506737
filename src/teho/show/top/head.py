"""The head of the screen: the most important sentence, and the facts of the run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from teho.model.missing import Missing
from teho.show.cells import MARKS, cell_text, labelled_value, plain
from teho.show.text.flow import dotted, flow
from teho.show.top.frame import Frame
from teho.show.top.rows import MARK_STYLES, WARNING, cut, uncoloured, ways
from teho.units import format_duration

__all__ = ["head", "run_facts"]

_HEAD_FACTS = {
    "left_s": "expected end in {}",
    "steps_per_s": "pace {}",
    "steps_per_s_now": "now {}",
    "cost": "cost {}",
    "cost_left": "{} more until the limit",
    "cost_unused": "{} not used",
    "gpu_energy_j": "GPU energy {}",
}
"""Key of a fact -> its short form, in the order in which they are shown."""
_WITH_NOTE = frozenset({"steps_per_s_now"})
"""Facts whose note is short and important: how much the pace differs from the whole run's."""


def head(frame: Frame, width: int, height: int = 3) -> list[Text]:
    """Return the most important sentence, and the facts of the run in the lines that are left.

    If something is wrong at this moment, it is the first line, and the verdict follows.

    Args:
        frame: what is shown.
        width: columns of the terminal.
        height: number of lines; with only one, the facts are left out.
    """
    report = frame.report
    mark = MARKS[report.verdict_severity]
    lead = Text(f"{mark} ", MARK_STYLES[report.verdict_severity])
    sentence = flow(uncoloured(report.verdict), width, lead, hang=2)
    room = max(1, height - 1)
    alert = [Text(f"{MARKS['warning']} {plain(frame.alert)}", WARNING)] if frame.alert else []
    shown = [*alert, *_first(sentence, room - len(alert))]
    if height > 1:
        facts = flow(dotted([Text(plain(one)) for one in _facts(frame)]), width, Text(), hang=2)
        shown += _first(facts, height - len(shown))
    return [cut(line, width) for line in shown]


def _first(lines: list[Text], count: int) -> list[Text]:
    """Return the first lines; the last one continues, so that it ends with an ellipsis."""
    shown = lines[: max(0, count)]
    if shown and len(shown) < len(lines):
        shown[-1].append(f" {lines[len(shown)].plain.strip()}")
    return shown


def _facts(frame: Frame) -> Iterator[str]:
    """Yield the facts of the run, the most important first: the last ones may have no room."""
    yield frame.report.state
    yield format_duration(frame.elapsed_s)
    if (left_s := frame.until_limit_s) is not None:
        yield f"{format_duration(left_s)} until the time limit"
    yield from frame.notes
    by_key = {fact.key: fact for fact in frame.report.facts}
    for key, phrase in _HEAD_FACTS.items():
        fact = by_key.get(key)
        if fact is not None and not isinstance(fact.value, Missing):
            note = f" ({fact.note})" if fact.note and key in _WITH_NOTE else ""
            yield phrase.format(cell_text(fact.value, fact.unit)) + note
    if frame.replayed_s is None and (came := ways(frame.nodes)):
        yield came
    if (job := by_key.get("job_id")) is not None:
        yield f"job {cell_text(job.value)}"


def run_facts(frame: Frame) -> Iterator[tuple[str, str]]:
    """Yield the label and the value of each fact of the head, with its note.

    The help shows them, because a small screen has not enough room for all of them.
    """
    yield "State", frame.report.state
    yield "Elapsed", format_duration(frame.elapsed_s)
    if (left_s := frame.until_limit_s) is not None:
        yield "Until the time limit", format_duration(left_s)
    by_key = {fact.key: fact for fact in frame.report.facts}
    for key in (*_HEAD_FACTS, "job_id"):
        if (fact := by_key.get(key)) is not None:
            note = f" ({fact.note})" if fact.note else ""
            why = fact.value.detail if isinstance(fact.value, Missing) else ""
            value = f"not known: {why}" if why else labelled_value(fact.value, fact.unit)
            yield fact.label, value + note
    if frame.replayed_s is None and (came := ways(frame.nodes)):
        yield "Values", came.removeprefix("values").lstrip(": ")
    for note in frame.notes:
        yield "Note", note
