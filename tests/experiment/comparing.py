"""`teho compare` as a process, its answer, and the programs that it compares."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

from experiment.samples import FREE, place
from support import TEHO, wait_for
from teho.experiment.verdict import judge
from teho.model.compared import Compared, Point
from teho.show.json.noun import schema_of

__all__ = ["CLUSTERS", "STEPS", "after_three_rounds", "answer_in", "as_judged", "compare", "found"]

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
    return answer_in(done.stdout)


def after_three_rounds(home: Path, *words: str | Path) -> str:
    """Run a comparison of two variants, and return its answer in JSON after three rounds.

    If the verdict is still open, Ctrl-C ends it: seven more rounds would take most of the time.
    """
    before = len([*home.glob("runs/*")])
    command, *options = map(str, words)
    with subprocess.Popen(
        [*TEHO, command, "--format", "json", *options], stdout=subprocess.PIPE, text=True
    ) as running:
        wait_for(
            lambda: running.poll() is not None or len([*home.glob("runs/*")]) > before + 6, 120
        )
        running.send_signal(signal.SIGINT)  # does nothing if it has ended
        printed, _ = running.communicate(timeout=60)
    return printed


def answer_in(output: str) -> dict[str, Any]:
    """Return an answer that was printed, which is as its schema has it."""
    answer = json.loads(output)
    jsonschema.validate(answer, schema_of(Compared))
    return answer


def as_judged(answer: dict[str, Any]) -> Point:
    """Return the only point, after judging its runs again: the verdict follows from the figures.

    Times of real programs depend on what else the machine does, so no test here expects a verdict
    that rests on them. test_verdict.py tests the verdict with fixed times.
    """
    (point,) = msgspec.convert(answer, Compared).points
    runs = {place(one.name, one.cores): one.samples for one in point.variants}
    again = judge(runs, FREE)
    assert (again.outcome, again.verdict) == (answer["outcome"], answer["verdict"])
    assert again.comparison == point.comparison
    assert set(again.notes) <= set(point.notes)
    return point
