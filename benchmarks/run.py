"""Run the benchmarks and print their tables; `--write` writes the page of the docs.

python benchmarks/run.py                                 all of them, about three hours
python benchmarks/run.py --only start
python benchmarks/run.py --write docs/benchmarks.md
python benchmarks/run.py --only start --write docs/benchmarks.md    write only this section again
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from common import Row, machine, say

NAMES = (
    "start",
    "launch",
    "always",
    "always_jobs",
    "plan",
    "jobs",
    "recorder",
    "devices",
    "live",
    "metadata",
    "hangs",
    "doctor",
    "slowdown",
    "probe",
    "lines",
    "tune",
    "profiler",
    "feed",
    "disk",
    "big_report",
    "logs",
    "stores",
    "portal",
)

_HEADS = ("What", "Unit", "Teho", "Other tool", "Ratio", "Budget", "Budget kept")
_PREFACE = """\
# Benchmarks

<!-- Written by `make bench`; do not edit. -->

This page shows the cost of Teho in time and memory, compared with the cost of other tools. Each
section was measured in one session, on the machine that the section names. Figures are medians,
with the minimum and the maximum in brackets. The column *Other tool* has the figure of a tool or
program that does similar work. A *ratio* is Teho's median divided by the median of the other tool.
A *budget* is the largest figure that we allow for Teho. The budget *≤ other tool* means: at most
the figure of the other tool. The column *Budget kept* says whether Teho's median is within the
budget. *Stub GPUs* are not real GPUs: a library that behaves like NVIDIA's library (a *stand-in*)
reports eight H100 GPUs. The command `make bench` measures everything again and writes this page.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run Teho's benchmarks.")
    parser.add_argument(
        "--only", choices=NAMES, action="append", help="only this one; may be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="only check that it runs; figures mean little"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of the docs")
    options = parser.parse_args(arguments)
    sections = _sections_of(options.write) if options.only and options.write else {}
    for name in options.only or NAMES:
        say(name)
        described = machine()
        module = import_module(name)
        rows = module.measure(quick=options.quick)
        if not rows:
            say(f"{name} was not measured; a section of an earlier measurement stays")
            continue
        sections[_heading(name)] = _section(name, module.__doc__ or "", rows, described)
        print(sections[_heading(name)], flush=True)
    if options.write:
        ordered = [sections[h] for h in map(_heading, NAMES) if h in sections]
        page = [_PREFACE, *ordered]
        options.write.write_text("\n".join(page), encoding="utf-8")
        say(f"wrote {options.write}")
    return 0


def _sections_of(page: Path) -> dict[str, str]:
    """Return the sections of a page, by their headings, in the order of the page."""
    parts = page.read_text(encoding="utf-8").split("\n## ")[1:] if page.exists() else []
    return {f"## {part.partition(chr(10))[0]}": f"## {part}".rstrip("\n") + "\n" for part in parts}


def _heading(name: str) -> str:
    return f"## {name.replace('_', ' ').capitalize()}"


def _section(name: str, about: str, rows: Sequence[Row], described: Sequence[str]) -> str:
    title, _, details = about.strip().partition("\n\n")
    lines = [_heading(name), "", title, ""]
    lines += [_line(_HEADS), _line(["---"] * len(_HEADS)), *(_line(row.cells()) for row in rows)]
    date, *facts = described
    lines += ["", f"*Measured on {date}, on this machine: {'; '.join(facts)}*", ""]
    return "\n".join([*lines, details, ""]) if details else "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
