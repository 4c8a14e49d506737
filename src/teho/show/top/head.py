"""The head of the screen: the most important sentence, and the facts of the run."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from teho.model.document import Fact
from teho.model.missing import Missing
from teho.show.cells import MARKS, cell_text, plain
from teho.show.text.document import VERDICT_STYLES
from teho.show.text.flow import flow, words
from teho.show.top.frame import Frame
from teho.show.top.rows import cut
from teho.units import format_duration

__all__ = ["head"]

_HEAD_FACTS = (
    "left_s", "job_id", "steps_per_s", "steps_per_s_now", "cost", "cost_left", "cost_unused",
    "gpu_energy_j",
)  # fmt: skip
_WITH_NOTE = frozenset({"steps_per_s_now"})
"""Facts whose note is short and important: how much the pace differs from the whole run's."""


def head(frame: Frame, width: int, height: int = 3) -> list[Text]:
    """Return the most important sentence, and the facts of the run in one line.

    Args:
        frame: what is shown.
        width: columns of the terminal.
        height: number of lines; with only one, the facts are left out.
    """
    report = frame.report
    mark = MARKS[report.verdict_severity]
    style = VERDICT_STYLES[report.verdict_severity]
    sentence = flow(words(plain(report.verdict)), width, Text(f"{mark} ", style), hang=2)
    shown = sentence[: max(1, height - 1)]
    if len(shown) < len(sentence):
        shown[-1].append(f" {sentence[len(shown)].plain.strip()}")
    facts = [Text(" · ".join(_facts(frame)))] if height > 1 else []
    return [cut(line, width) for line in (*shown, *facts)]


def _facts(frame: Frame) -> Iterable[str]:
    yield frame.report.state
    yield format_duration(frame.elapsed_s)
    if frame.report.state == "running" and frame.limit_s:
        left_s = max(0.0, frame.limit_s - frame.elapsed_s)
        yield f"{format_duration(left_s)} until the time limit"
    yield from frame.notes
    by_key = {fact.key: fact for fact in frame.report.facts}
    for key in _HEAD_FACTS:
        fact = by_key.get(key)
        if fact is not None and not isinstance(fact.value, Missing):
            yield _fact_text(fact)


def _fact_text(fact: Fact) -> str:
    note = f" ({fact.note})" if fact.note and fact.key in _WITH_NOTE else ""
    return f"{fact.label} {cell_text(fact.value, fact.unit)}{note}"
