"""Compute the scores from the results, and write the confusion table and the page of the docs."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cases import Case, Setting
from measured import Found

__all__ = ["Result", "changed_setting", "confusion", "page", "summary"]

_NOTHING = "no finding"
_LEAST_GAIN = 1.05
"""If the ideal setting gains less than this, *regained* cannot be measured."""
_PEER_CLEAN = (
    "COMPUTE_BOUND", "BALANCED", "NO_CLEAR_PERFORMANCE_BOTTLENECK", "INSUFFICIENT_STEP_TIME_DATA",
)  # fmt: skip
"""What TraceML says if it names no problem."""


@dataclass
class Result:
    """The results of one case: a value for each seed."""

    case: Case
    faulty: list[Found] = field(default_factory=list)
    ideal: list[Found] = field(default_factory=list)
    changed: list[Found] = field(default_factory=list)
    """After the change that the finding suggests, if the cause was right."""
    peer: list[Found] = field(default_factory=list)
    skipped: str = ""
    """Why the case was not run to its end."""
    peer_skipped: str = ""

    @property
    def is_control(self) -> bool:
        """Whether the program has no fault."""
        return self.case.expected is None

    @property
    def right(self) -> int:
        """Number of runs in which the top cause was the planted fault, or in a control, none."""
        return sum(found.top == self.case.expected for found in self.faulty)

    @property
    def gain(self) -> float | None:
        """How many times as fast the ideal setting is."""
        return _quotient(self.ideal, self.faulty)

    @property
    def regained(self) -> float | None:
        """Gain of the suggested change, as a share of the ideal gain; None: that is too small."""
        if self.gain is None or self.gain < _LEAST_GAIN:
            return None
        changed = _quotient(self.changed, self.faulty)
        return 0.0 if changed is None else (changed - 1) / (self.gain - 1)


def changed_setting(case: Case, found: Found) -> Setting | None:
    """Return the setting that a finding suggests; None: the cause is wrong, or a number is missing.

    If the action has a number for an option of the program, this number is used. If the action is
    to change the code or to request more, the ideal setting has this change already.
    """
    if found.top is None or found.top != case.expected or case.ideal is None:
        return None
    if case.option is None:
        return case.ideal
    pattern, words = case.option
    number = re.search(pattern, found.action)
    return None if number is None else Setting(words.format(number[1]))


def confusion(results: Iterable[Result]) -> list[str]:
    """Return a table in Markdown: planted faults and found causes, with the number of runs."""
    rows = [
        (result.case, Counter(one.top or _NOTHING for one in result.faulty))
        for result in results
        if result.faulty
    ]
    found = sorted({kind for _, counts in rows for kind in counts}, key=_nothing_last)
    heads = ["Planted", *found]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for case, counts in rows:
        right = case.expected or _NOTHING
        cells = [
            f"**{counts[kind]}**" if kind == right else f"{counts[kind] or ''}" for kind in found
        ]
        lines.append(_line([f"{case.key}: {right}", *cells]))
    return lines


def _nothing_last(kind: str) -> tuple[bool, str]:
    return kind == _NOTHING, kind


def summary(results: Sequence[Result]) -> list[str]:
    """Return a line for each score."""
    faults = [result for result in results if not result.is_control]
    controls = [result for result in results if result.case.key.startswith("c")]
    missing = [result for result in results if result.case.key.startswith("m")]
    accused = [(sum(f.top == r.case.expected for f in r.ideal), len(r.ideal)) for r in faults]
    abstained = [(sum(bool(f.abstained) for f in r.faulty), len(r.faulty)) for r in missing]
    named = [(_peer_right(r), len(r.peer)) for r in faults]
    clean = [(_peer_clean(r), len(r.peer)) for r in controls]
    return [
        (
            "Runs with a fault in which the top cause is right: "
            f"{_share(_rights(faults))} (goal: 95 %)"
        ),
        f"Runs of controls in which Teho names no cause: {_share(_rights(controls))} (goal: all)",
        f"Runs of repaired programs in which Teho still names the cause: {_share(accused)}",
        (
            "Runs without the signal of the fault in which Teho names no cause: "
            f"{_share(_rights(missing))}"
        ),
        (
            "Runs without this signal in which a rule says that the signal is missing: "
            f"{_share(abstained)}"
        ),
        (
            "Gain from the change that Teho suggests, divided by the gain from the repair: "
            f"{_regained(faults)}"
        ),
        (
            "Runs with a fault in which another tool, TraceML, names the class of the fault: "
            f"{_share(named)}"
        ),
        f"Runs of controls in which TraceML names no problem: {_share(clean)}",
    ]


def _rights(results: Iterable[Result]) -> list[tuple[int, int]]:
    return [(result.right, len(result.faulty)) for result in results]


def _peer_right(result: Result) -> int:
    return sum(found.top == result.case.peer for found in result.peer)


def _peer_clean(result: Result) -> int:
    return sum(found.top in _PEER_CLEAN for found in result.peer)


def _regained(faults: Sequence[Result]) -> str:
    values = [result.regained for result in faults if result.regained is not None]
    if not values:
        return "no measurable gain"
    return (
        f"{100 * statistics.median(values):.0f} % (median of "
        f"{len(values)} faults; minimum {100 * min(values):.0f} %)"
    )


def _share(pairs: Iterable[tuple[int, int]]) -> str:
    counts = list(pairs)
    part, whole = sum(count for count, _ in counts), sum(count for _, count in counts)
    return f"{part} of {whole}" + (f", {100 * part / whole:.0f} %" if whole else "")


def _quotient(over: Sequence[Found], under: Sequence[Found]) -> float | None:
    """Return the ratio of the median speeds; None if one of them was not measured."""
    if not over or not under:
        return None
    speeds = [
        statistics.median(found.steps_per_s for found in several) for several in (over, under)
    ]
    return speeds[0] / speeds[1] if speeds[1] else None


def details(results: Iterable[Result]) -> list[str]:
    """Return a table in Markdown of all cases."""
    heads = ["", "Case", "Top cause right", "Ideal ÷ faulty", "Regained", "TraceML says"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    for result in results:
        case = result.case
        if result.skipped:
            lines.append(_line([case.key, case.title, result.skipped, "", "", ""]))
            continue
        gain = result.gain
        regained = result.regained
        lines.append(
            _line(
                [
                    case.key,
                    case.title,
                    f"{result.right} of {len(result.faulty)}",
                    "" if gain is None else f"{gain:.2f}",
                    "" if regained is None else f"{100 * regained:.0f} %",
                    _peer_cell(result),
                ]
            )
        )
    return lines


def _peer_cell(result: Result) -> str:
    if result.peer_skipped:
        return result.peer_skipped
    counts = Counter(found.top or _NOTHING for found in result.peer)
    return ", ".join(f"{kind} × {count}" for kind, count in counts.most_common())


_PREFACE = """\
# Planted faults

<!-- Written by `make faults`; do not edit. -->

This page shows how often `teho report` names the right cause of a problem. Small real programs
(`benchmarks/faults/programs/`) run under `teho run --probe auto`. Each program has one planted
fault. The *top cause* is the first finding in `teho report` that says why time was lost. A
*control* is a program without a fault. For a control, the report must not name a cause. A
*repaired* program is the same program without its fault. Some programs are recorded without the
probe, so the signal that shows the fault is missing. For these programs too, the report must not
name a cause. The command `make faults` runs all programs again and writes this page.
"""
_CONFUSION = """\
Each row is a planted fault or a control, and each column is a cause that Teho found. A number in
the table is a number of runs. If the number is bold, Teho found the right cause in these runs. If
the first cell of a row says *no finding*, Teho must not find a cause in this row. The last column
has the runs in which Teho found no cause.
"""
_CASES = """\
Each row is one *case*: a program with a fault, or a control. The section
[How it is measured](#how-it-is-measured) explains the columns.
"""
_METHOD = """\
Each program generates its input data once, before the measurement. A case with a fault has two
settings: the setting with the fault, and the *ideal* setting without the fault. The program runs
with both settings, once for each random seed. The program trains for {seconds:g} s with the fault,
and for a shorter time without the fault. The settings alternate, so a slow change of the machine
affects both settings equally. Each program counts its own steps. All speeds on this page are
medians of steps per second. *Ideal ÷ faulty* is the speed with the ideal setting, divided by the
speed with the fault.

*Regained* is the gain from the change that Teho suggests, divided by the gain from the ideal
setting. Both gains are in steps per second. If Teho's advice names a number of workers, the
benchmark runs the program with this number. If the advice asks for different code, different data
or a larger allocation, the benchmark uses the ideal setting, because this setting already has the
change. If the top cause is wrong, *regained* is 0. If the ideal setting is less than 5 % faster
than the setting with the fault, *regained* is empty.

For all runs with Teho on this page, we changed one threshold of Teho: Teho judges each run that
takes 5 s or more. Normally, Teho judges only runs of 60 s or more.

In fault 9, files are slow to open: a library outside the program (`slow_open.c`) delays each `open`
of a data file. The memory limit of fault 10 is the limit of a real control group (cgroup). When the
program with fault 10 starts, the data of this program are not in the page cache. If the number of a
case begins with `m`, the program of this case has a fault, but is recorded without the probe. So
the recordings of this case do not have the signal that shows the fault.

TraceML is another tool that looks for problems in training programs. Each program also runs once
with TraceML, in a separate Python environment. For TraceML, each program makes the calls that
TraceML's documentation asks for (`traceml.init` and `trace_step`). TraceML names classes of
problems instead of causes. These are its four classes:

- `INPUT_BOUND`: the input of the program limits the speed.
- `COMPUTE_BOUND`: computing limits the speed.
- `RESIDUAL_HEAVY`: much time is outside the phases of a step.
- `INPUT_STRAGGLER`: one rank gets its input later than the other ranks.

If TraceML's class fits the fault, TraceML's answer counts as right. For a control, TraceML's answer
counts as right if TraceML names no class, or `COMPUTE_BOUND`. With
`INSUFFICIENT_STEP_TIME_DATA`, TraceML says that it has too few data, so TraceML names no class. The
column *TraceML says* is empty if TraceML has no class for the fault, or cannot trace the program.
For fault 10, this column is also empty, because the program and TraceML together need more memory
than the limit.

Faults 13 to 18 and 20 appear only on a GPU. The folder `benchmarks/faults/recordings/` has two
recordings for each of these faults: one of the program with the fault, and one of the repaired
program. A file beside each recording (`expected.json`) names the finding that Teho must report
first, or must not report first. After we had seen Teho's first results for these recordings, we
changed Teho's rules, and the expected findings of faults 14, 15, 17 and 20. So the result below
does not show how well Teho judges unknown programs. The page [On a real GPU](gpu.md) shows the
first results.
{recordings}
"""


def page(
    results: Sequence[Result], *, facts: Sequence[str], seconds: float, recordings: str
) -> str:
    """Return the page of the docs."""
    parts = [
        _PREFACE,
        "\n".join(f"- {line}" for line in summary(results)) + "\n",
        "## Confusion\n",
        _CONFUSION,
        "\n".join(confusion(results)) + "\n",
        "## Case by case\n",
        _CASES,
        "\n".join(details(results)) + "\n",
        f"*Measured on {facts[0]}, on this machine: {'; '.join(facts[1:])}*\n",
        "## How it is measured\n",
        _METHOD.format(seconds=seconds, recordings=recordings),
    ]
    return "\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
