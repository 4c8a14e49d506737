"""Write docs/blind.md: how many faults of each blind round Teho named at the first try.

python benchmarks/blind/score.py --write docs/blind.md

Each round has `answers.toml`, the measured shares in `measured.toml`, and `verdicts.toml`. The
reader who wrote the verdicts knew the answers and the reports, but not the rules.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

_HERE = Path(__file__).resolve().parent

REASSURANCE_SHARE = 0.10
"""A green verdict is false if the fault takes at least this part of the time."""

_HEAD = """# Blind rounds

<!-- Written by `python benchmarks/blind/score.py`; do not edit. -->

This page shows how often `teho report` names the cause of a fault in new programs. Before the test,
Teho was not changed for these programs. In each round, an author (a person or a program) plants
faults in new programs. The author does not know Teho's rules. Some programs have no fault: these
are the *controls*. A secret list, the *answers*, says which fault is in which program. Teho records
each program once. A reader, who does not know Teho's rules either, then compares Teho's reports
with the answers. These recordings and reports are the *first try*. The table below has the result
of the first try. The developers of Teho may read the answers and change the rules only after the
first try. The programs, repairs, answers, reports and verdicts of the reader are in
`benchmarks/blind/`.

For a program with a fault, the reader gives one of these verdicts:

- *Right*: the first line of the report or the first finding names the planted cause, and a user
  knows what to change.
- *Half*: a later finding names the cause, or the first finding names only the class of the cause.
- *Wrong*: the first finding names another cause, and no finding names the planted cause.
- *None*: no finding names any cause.

The reader also marks a report as *false reassurance* if the first line of the report has a green
mark although the fault takes 10 % of the time or more. For a control, the reader gives one of these
verdicts:

- *Clean*: no finding claims a problem that does not exist.
- *True remark*: a finding is true and useful.
- *False alarm*: a finding is not true or not useful.

A fault that takes less than 8 % of the time is not counted. In the tables, the verdict of such a
fault is *small*.

The goal is two rounds in a row in which at least 95 % of the faults are *right*. In these two
rounds, there must be no false reassurance and no false alarm.

The programs of round 11 ran on a GPU (an NVIDIA H200). The programs of all other rounds ran on
machines without a GPU.
"""


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reader says about the report of one program."""

    verdict: Literal[
        "right", "half", "wrong", "none", "small", "clean", "false_alarm", "true_remark"
    ]
    false_reassurance: bool
    advice: Literal["cures", "helps", "no", "-"]
    table_shows: bool
    why: str


class Answer(msgspec.Struct, frozen=True):
    """What was planted in one program."""

    kind: Literal["fault", "control"]
    shape: str


class Times(msgspec.Struct, frozen=True):
    """How long a program ran, and which part of the time its fault took."""

    seconds: float
    share: float | None = None
    certainty: Literal["sure", "likely", "possible"] | None = None
    """How certain the first finding about the program was. None: no finding, or not recorded."""


class Round(msgspec.Struct, frozen=True):
    """One round: its name, and each program by name."""

    name: str
    answers: dict[str, Answer]
    times: dict[str, Times]
    verdicts: dict[str, Verdict]

    def faults(self) -> dict[str, Verdict]:
        """Return the verdicts on faults that take enough time to count."""
        return {
            name: one
            for name, one in self.verdicts.items()
            if self.answers[name].kind == "fault" and one.verdict != "small"
        }

    def controls(self) -> dict[str, Verdict]:
        """Return the verdicts on healthy programs."""
        return {
            name: one for name, one in self.verdicts.items() if self.answers[name].kind == "control"
        }


def judged_rounds() -> list[Round]:
    """Return the rounds whose reports were judged, the oldest first."""
    places = sorted(
        (one.parent for one in _HERE.glob("round*/verdicts.toml")),
        key=lambda place: int(place.name.removeprefix("round")),
    )
    return [
        Round(
            place.name,
            _read(place / "answers.toml", dict[str, Answer]),
            _read(place / "measured.toml", dict[str, Times]),
            _read(place / "verdicts.toml", dict[str, Verdict]),
        )
        for place in places
    ]


def _read(path: Path, kind: type) -> dict:
    return msgspec.toml.decode(path.read_bytes(), type=kind)


def page(rounds: Sequence[Round]) -> str:
    """Return the page on all judged rounds."""
    lines = [_HEAD, *_summary(rounds), "", *_calibration(rounds)]
    for one in rounds:
        lines += ["", *_programs(one)]
    return "\n".join(lines) + "\n"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _summary(rounds: Sequence[Round]) -> Iterator[str]:
    yield "| First try | " + " | ".join(f"Round {one.name[5:]}" for one in rounds) + " |"
    yield "|---|" + "---:|" * len(rounds)
    for title, cells in _rows(rounds):
        yield f"| {title} | {' | '.join(cells)} |"


def _rows(rounds: Sequence[Round]) -> Iterator[tuple[str, list[str]]]:
    faults = [list(one.faults().values()) for one in rounds]
    controls = [list(one.controls().values()) for one in rounds]
    yield "Faults", [str(len(those)) for those in faults]
    for kind in ("right", "half", "wrong", "none"):
        counts = [sum(one.verdict == kind for one in those) for those in faults]
        yield (
            f"- {kind}",
            [
                f"{count} ({_percent(count / len(those))})"
                for count, those in zip(counts, faults, strict=True)
            ],
        )
    yield (
        "False reassurance",
        [str(sum(one.false_reassurance for one in those)) for those in faults],
    )
    yield (
        "Faults for which the advice removes most of the lost time",
        [str(sum(one.advice == "cures" for one in those)) for those in faults],
    )
    yield (
        "Faults whose line of code is first or second in a table of the report",
        [str(sum(one.table_shows for one in those)) for those in faults],
    )
    yield "Controls", [str(len(those)) for those in controls]
    for kind, title in (
        ("clean", "clean"),
        ("true_remark", "true remark"),
        ("false_alarm", "false alarm"),
    ):
        yield f"- {title}", [str(sum(one.verdict == kind for one in those)) for those in controls]


def _calibration(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield how often the first finding was right, by its certainty, over all rounds."""
    counts: dict[str, Counter[str]] = {one: Counter() for one in ("sure", "likely", "possible")}
    for one in rounds:
        for name, verdict in (one.faults() | one.controls()).items():
            certainty = one.times[name].certainty
            if certainty:
                counts[certainty][verdict.verdict] += 1
    yield "## How certain the findings are, and how often they are right"
    yield ""
    yield (
        "Each finding says how certain Teho is: *sure*, *likely* or *possible*. The table counts\n"
        "the first finding of each program at the first try, in round 2 and in all later rounds.\n"
        "A *true remark* counts as right. The column *Clean* has the findings about controls that\n"
        "the reader did not count as false alarms."
    )
    yield ""
    yield "| Certainty | Findings | Right | Half | Wrong or none | False alarm | Clean |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for certainty, found in counts.items():
        right = found["right"] + found["true_remark"]
        cells = (right, found["half"], found["wrong"] + found["none"], found["false_alarm"])
        yield (
            f"| {certainty} | {found.total()} | {' | '.join(map(str, cells))} | {found['clean']} |"
        )


def _programs(one: Round) -> Iterator[str]:
    yield f"## Round {one.name[5:]}: each program"
    yield ""
    shapes = Counter(answer.shape for answer in one.answers.values())
    yield (
        "Kinds of programs, with the number of programs in brackets: "
        + ", ".join(f"{shape} ({n})" for shape, n in shapes.most_common())
        + "."
    )
    yield ""
    yield "| Program | Time that the fault takes | Verdict of the reader | Why |"
    yield "|---|---:|---|---|"
    for name, verdict in one.verdicts.items():
        share = one.times[name].share
        lost = "control" if one.answers[name].kind == "control" else _percent(share or 0)
        said = verdict.verdict.replace("_", " ")
        said += ", false reassurance" if verdict.false_reassurance else ""
        yield f"| {name} | {lost} | {said} | {verdict.why.replace('|', chr(92) + '|')} |"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the page on the blind rounds.")
    parser.add_argument("--write", type=Path, help="the page; otherwise it is printed")
    options = parser.parse_args(arguments)
    text = page(judged_rounds())
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
