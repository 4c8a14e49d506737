"""Runs the programs that hang, and the controls, under `teho run`; says what the report says.

    python benchmarks/hangs/run.py --python BIN/python [NAME…]

The result is one line for each case, and the table of `benchmarks/hangs.py`. A program that hangs
is ended with SIGTERM when the report has named it, as a scheduler does at a time limit. Each
control runs to its end. `--at-once` programs run at the same time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hangs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=hangs.PYTHON)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("names", nargs="*", help="such as h01; without names, all run")
    options = parser.parse_args()
    known = [case["name"] for case in hangs.cases()]
    for name in options.names:
        if not any(one[:3] == name for one in known):
            parser.error(f"{name}: no such case; expected one of {', '.join(k[:3] for k in known)}")
    results = hangs.run_all(hangs.cases(options.names), options.python, options.at_once)
    for row in hangs.rows_of(results):
        print(" | ".join(row.cells()))


if __name__ == "__main__":
    main()
