"""`teho compare` as a process, its answer, and the programs that it compares."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from experiment.samples import FREE, place
from support import TEHO
from teho.experiment.verdict import judge
from teho.model.compared import Compared, Point
from teho.show.json.noun import schema_of

__all__ = ["CLUSTERS", "STEPS", "as_judged", "compare", "found"]

CLUSTERS = Path(__file__).parents[1] / "data" / "cli" / "clusters"
STEPS = """\
import os, signal, sys, time
import teho

signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # it ends well after SIGTERM
while True:
    time.sleep(0.01)
    teho.step()
"""


def compare(
    *words: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*TEHO, "compare", *map(str, words)], env={**os.environ, **(env or {})},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def found(*words: str | Path, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the answer in JSON, which is as its schema has it."""
    done = compare("--format", "json", *words, env=env)
    assert done.stdout, done.stderr
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, schema_of(Compared))
    return answer


def as_judged(answer: dict[str, Any]) -> Point:
    """Return the only point, after judging its runs again: the verdict follows from the figures.

    Times of real programs depend on what else the machine does, so no test here expects a verdict
    that rests on them. test_contest.py tests the verdict with fixed times.
    """
    (point,) = msgspec.convert(answer, Compared).points
    runs = {place(one.name, one.cores): one.samples for one in point.variants}
    again = judge(runs, FREE)
    assert (again.outcome, again.verdict) == (answer["outcome"], answer["verdict"])
    assert again.contest == point.contest
    assert set(again.notes) <= set(point.notes)
    return point
