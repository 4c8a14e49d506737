"""The head of the screen: the most important sentence, and the facts of the run."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from teho.model.document import Fact
from teho.model.missing import Missing
from teho.show.cells import MARKS, cell_text, plain
from teho.show.text.document import VERDICT_STYLES
from teho.show.text.flow import dotted, flow, words
from teho.show.top.frame import Frame
from teho.show.top.rows import WARNING, cut, ways
from teho.units import format_duration

__all__ = ["head"]

_HEAD_FACTS = (
    "left_s", "job_id", "steps_per_s", "steps_per_s_now", "cost", "cost_left", "cost_unused",
    "gpu_energy_j",
)  # fmt: skip
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
    style = VERDICT_STYLES[report.verdict_severity]
    sentence = flow(words(plain(report.verdict)), width, Text(f"{mark} ", style), hang=2)
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


def _facts(frame: Frame) -> Iterable[str]:
    yield frame.report.state
    yield format_duration(frame.elapsed_s)
    if frame.report.state == "running" and frame.limit_s:
        left_s = max(0.0, frame.limit_s - frame.elapsed_s)
        yield f"{format_duration(left_s)} until the time limit"
    if frame.replayed_s is None and (came := ways(frame.nodes)):
        yield came
    yield from frame.notes
    by_key = {fact.key: fact for fact in frame.report.facts}
    for key in _HEAD_FACTS:
        fact = by_key.get(key)
        if fact is not None and not isinstance(fact.value, Missing):
            yield _fact_text(fact)


def _fact_text(fact: Fact) -> str:
    note = f" ({fact.note})" if fact.note and fact.key in _WITH_NOTE else ""
    return f"{fact.label} {cell_text(fact.value, fact.unit)}{note}"
