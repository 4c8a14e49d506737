"""What `teho tune` prints."""

from __future__ import annotations

import json

import jsonschema
import msgspec
import pytest

from teho.model.tuned import Change, Gain, Trial, Tuned
from teho.show.build.tune import tune_document
from teho.show.json.noun import render_noun, schema_of
from teho.show.text.document import render_text

TUNED = Tuned(
    command=("python", "träin.py", "\udcff"),
    outcome="gain",
    verdict="`num_workers=2` makes the program 1.90 times as fast (95 % confidence: 1.70 to 2.10)",
    settings={"num_workers": 2},
    gain=Gain(times=1.9, low=1.7, high=2.1, pairs=4),
    unit="step",
    changes=(
        Change(file="/elsewhere/train.py", line=31, text="DataLoader(data)",
               set_to="num_workers=2", remark="A remark."),
    ),
    trials=(
        Trial(settings={}, steps_per_s=9.5, speed=1.0, waited_percent=81.2, runs=5),
        Trial(settings={"num_workers": 2}, steps_per_s=18.05, speed=1.9, waited_percent=3, runs=4),
        Trial(settings={"num_workers": 2, "prefetch_factor": 4}, why="it ended [x]"),
    ),
    notes=("Something was left out.",),
    elapsed_s=100.0,
)  # fmt: skip
TEXT = """\
✓ `num_workers=2` makes the program 1.90 times as fast (95 % confidence: 1.70 to
  2.10)
  9.5 → 18.1 steps/s, measured in 4 pairs of runs

Change
  /elsewhere/train.py:31: DataLoader(data)
    → num_workers=2
    A remark.

Tried
steps/s  speed  waited %  runs  settings
   9.50   1.00        81     5  unchanged
  18.05   1.90         3     4  num_workers=2

Not measured
  ✗ num_workers=2 prefetch_factor=4: it ended [x]

  Something was left out.
"""


def test_the_verdict_comes_first() -> None:
    assert render_text(tune_document(TUNED), width=80, color=False) == TEXT


def test_a_larger_batch_is_shown_in_steps_of_the_size_before() -> None:
    settings = {"batch_size": 128}
    trials = (
        Trial(settings={}, steps_per_s=1234.5, speed=1.0, runs=4),
        Trial(settings=settings, steps_per_s=277.8, speed=1.8, runs=4),
    )
    tuned = msgspec.structs.replace(TUNED, settings=settings, trials=trials)
    said = render_text(tune_document(tuned), width=80, color=False)
    assert "  1,234 → 2,222 steps/s, counted in steps of the old batch size" in said


def test_a_path_below_here_is_shown_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir("/")
    assert "  elsewhere/train.py:31: " in render_text(tune_document(TUNED), width=80, color=False)


def test_json_is_what_its_schema_says() -> None:
    answer = json.loads(render_noun(TUNED))
    jsonschema.validate(answer, schema_of(Tuned))
    assert answer["schema"] == "teho.tune/1"
    assert answer["command"][2] == "\\udcff"
    assert answer["trials"][2]["speed"] is None
