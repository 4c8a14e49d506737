"""Run the benchmarks and print their table; `--write` puts it where the docs find it.

python benchmarks/run.py                                 all of them, some twenty minutes
python benchmarks/run.py --only start
python benchmarks/run.py --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from common import Row, machine, say

NAMES = ("start", "recorder", "slowdown", "disk", "big_report")

_HEADS = ("What", "Unit", "Teho", "Peer", "Ratio", "Budget", "Holds")
_PREFACE = """\
# Benchmarks

<!-- Written by `make bench`; do not edit. -->

What Teho costs, beside what others cost, measured in one go on one machine: medians, with
the least and the most in brackets. A ratio is Teho's median over the peer's.
`make bench` makes this page anew.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run Teho's benchmarks.")
    parser.add_argument("--only", choices=NAMES, action="append", help="this one; may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="see that it runs; figures mean little"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page of the docs")
    options = parser.parse_args(arguments)
    described = machine()
    sections = []
    for name in options.only or NAMES:
        say(name)
        module = import_module(name)
        sections.append(_section(name, module.__doc__ or "", module.measure(quick=options.quick)))
        print(sections[-1], flush=True)
    if options.write:
        facts = "\n".join(f"- {fact}" for fact in described)
        options.write.write_text("\n".join([_PREFACE, facts, "", *sections]), encoding="utf-8")
        say(f"wrote {options.write}")
    return 0


def _section(name: str, about: str, rows: Sequence[Row]) -> str:
    title, _, details = about.strip().partition("\n\n")
    lines = [f"## {name.replace('_', ' ').capitalize()}", "", title, ""]
    lines += [_line(_HEADS), _line(["---"] * len(_HEADS)), *(_line(row.cells()) for row in rows)]
    return "\n".join([*lines, "", details, ""]) if details else "\n".join([*lines, ""])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
