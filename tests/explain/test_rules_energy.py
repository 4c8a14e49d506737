"""`energy_disagrees` on both sides of its threshold, and where the question does not arise."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import UNSUPPORTED, NodePart, figures, found, gpu, judged, scenario
from teho.explain.rules.energy import energy_disagrees
from teho.model.finding import Severity


def made(apart: object = 0.0, *, gpus: int = 2, **behind: object):
    """Return a run whose first GPU's counter and power are so far apart."""
    run, summary = scenario(NodePart(gpus=[gpu()] * gpus))
    node = summary.nodes[0]
    first = node.gpus[0]
    energy = msgspec.structs.replace(first.energy, difference_percent=apart, **behind)
    changed = (msgspec.structs.replace(first, energy=energy), *node.gpus[1:])
    node = msgspec.structs.replace(node, gpus=changed)
    return run, msgspec.structs.replace(summary, nodes=(node,))


@pytest.mark.parametrize("apart", [5.1, -5.1, 40.0])
def test_a_difference_above_5_percent_is_reported(apart: float) -> None:
    finding = found(energy_disagrees, made(apart))
    assert finding.severity is Severity.REMARK
    assert finding.sentence.startswith("The energy counter and the power of GPU 0 on r01g01")
    shown = figures(finding)
    label = "energy from the counter minus energy from power times time"
    assert shown[f"{label} (GPU 0 on r01g01)"] == apart
    assert set(shown) == {
        f"{label} (GPU 0 on r01g01)"
        for label in (
            "energy from the counter minus energy from power times time",
            "energy from the counter",
            "energy from power times time",
        )
    }


@pytest.mark.parametrize("apart", [0.0, 4.9, -4.9])
def test_less_is_nothing(apart: float) -> None:
    assert judged(energy_disagrees, made(apart)) == []


def test_what_the_moments_of_reading_explain_is_nothing() -> None:
    """A run of a second: a tick of 100 ms is 10 % of it."""
    assert judged(energy_disagrees, made(12.0, chance_percent=15.0)) == []
    assert found(energy_disagrees, made(12.0, chance_percent=11.0))


def test_a_counter_that_had_stopped() -> None:
    finding = found(energy_disagrees, made(-60.0, stuck_s=1800.0))
    assert "did not advance for 30 min" in finding.sentence
    assert "So Teho computes the energy as power times time" in finding.sentence


def test_if_one_of_the_two_is_missing_the_question_does_not_arise() -> None:
    assert judged(energy_disagrees, made(UNSUPPORTED)) == []
    assert judged(energy_disagrees, scenario(NodePart(gpus=[gpu(gpu_power_w=UNSUPPORTED)]))) == []
    assert judged(energy_disagrees, scenario(NodePart())) == []
