"""Whether runs that were recorded before took turns, by their times."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from teho.experiment.from_recordings import _turns, _unlike
from teho.model.compared import PairComparison
from teho.model.device import Device
from teho.model.run import End, Node, Run
from teho.model.tuned import Gain

BEGAN = datetime(2026, 1, 1, tzinfo=timezone.utc)
COMPARISON = PairComparison(
    larger="gpu:1", smaller="cpu:1", speed=Gain(times=2.0, low=1.9, high=2.1, pairs=3)
)


def went(names: str, every_s: float = 10.0, took_s: float = 9.0) -> list[tuple[str, Run]]:
    """Return runs of `c` and `g`, and of another variant `o`, one begun after the other."""
    found = []
    for number, name in enumerate(names):
        began = BEGAN + timedelta(seconds=every_s * number)
        end = End(at=began + timedelta(seconds=took_s), elapsed_s=took_s, exit_code=0)
        run = Run(format=1, id=str(number), command=("x",), started_at=began, host="n", end=end)
        found.append(({"c": "cpu:1", "g": "gpu:1", "o": "cpu:2"}[name], run))
    return found


@pytest.mark.parametrize("names", ["cggccg", "cgcgcg", "coggoccog", "cggccgc"])
def test_in_each_round_both_are_run(names: str) -> None:
    said = _turns(COMPARISON, went(names))
    assert said == "These recorded runs alternated between the two variants."


@pytest.mark.parametrize("names", ["cccggg", "cgggcc", "ccoggocg"])
def test_otherwise_they_did_not_take_turns(names: str) -> None:
    said = _turns(COMPARISON, went(names))
    assert "did not alternate between the two variants, so the results include changes" in said


def test_overlapping_runs_do_not_count_as_turns() -> None:
    assert "at the same time" in _turns(COMPARISON, went("cgcgcg", took_s=11.0))


def on(gpu: str, cpu: str) -> Run:
    """Return a run on a node with this GPU, or with none."""
    devices = (Device(id="GPU-0", index=0, name=gpu, vendor="nvidia"),) if gpu else ()
    node = Node(
        name="n", started_at=BEGAN, period_s=1.0, cores=(0,), cpu_model=cpu, devices=devices
    )
    return replace(went("c")[0][1], nodes=(node,))


def test_runs_of_a_variant_on_unlike_machines_are_named() -> None:
    assert _unlike([on("V100", "x"), on("V100", "y"), on("", "x"), on("", "x")]) == []
    assert _unlike([on("V100", "x"), on("P100", "x"), on("", "x"), on("", "y")]) == [
        (
            "Runs of gpu:1 count as one variant, but used different models of CPU or GPU: V100 "
            "and P100."
        ),
        "Runs of cpu:1 count as one variant, but used different models of CPU or GPU: x and y.",
    ]
