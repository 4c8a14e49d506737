"""Activations that are computed again to save memory that is free."""

from __future__ import annotations

import msgspec
import pytest

from explain.program_parts import of_library, own, process, seen
from explain.scenario_parts import UNSUPPORTED, NodePart, figures, found, gpu, judged, scenario
from teho.explain.program import program_of
from teho.explain.rules.cpu import known_activity
from teho.explain.rules.memory import memory_saved_with_time
from teho.model.finding import Abstention, Severity
from teho.units import GIB

FRAMES = (
    of_library("torch/nn/modules/conv.py", "Conv2d.forward"),
    of_library("torch/utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook"),
    own("loss.backward()", 81),
)


def made(wall_s, used_gib=10.0, whole_s=100.0, **part):
    """Return a training on a node of 100 GiB that computed activations again."""
    on_gpu = {"torch": {"devices": ["cuda:0"]}} if "gpus" in part else {}
    run, summary = scenario(NodePart(**part))
    node = msgspec.structs.replace(
        summary.nodes[0], memory_peak_bytes=used_gib * GIB, memory_limit_bytes=100.0 * GIB
    )
    main = process(seen(FRAMES, wall_s), node=node.name, wall_s=whole_s, **on_gpu)
    return run, msgspec.structs.replace(summary, nodes=(node,), program=program_of([main]))


def test_says_what_it_costs_and_how_much_memory_was_used():
    finding = found(memory_saved_with_time, made(20.0))
    assert finding.sentence == (
        "The backward pass at train.py:81 computed activations again (checkpointing) for 20 % of "
        "the time, although only 10 % of the memory was used."
    )
    assert figures(finding)["used share of the memory, highest"] == pytest.approx(10.0)
    assert finding.regain_percent == (pytest.approx(14.0), pytest.approx(20.0))


@pytest.mark.parametrize(
    ("wall_s", "used_gib", "whole_s", "severity"),
    [
        (9.9, 10.0, 100.0, None),
        (10.0, 10.0, 100.0, Severity.WARNING),
        (10.0, 49.9, 100.0, Severity.WARNING),
        (10.0, 50.0, 100.0, None),  # without checkpointing, it might not fit
        (29.9, 50.0, 100.0, None),
        (30.0, 50.0, 100.0, Severity.REMARK),
        (0.99, 10.0, 5.0, None),
        (1.0, 10.0, 5.0, Severity.WARNING),
    ],
)
def test_thresholds(wall_s, used_gib, whole_s, severity):
    findings = judged(memory_saved_with_time, made(wall_s, used_gib, whole_s))
    assert [one.severity for one in findings] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("memory", "severity"),
    [(5 * GIB, Severity.CRITICAL), (30 * GIB, None)],
)
def test_on_a_gpu_the_memory_of_the_gpu_counts(memory, severity):
    given = made(20.0, gpus=[gpu(gpu_memory_used_bytes=memory)])
    findings = judged(memory_saved_with_time, given)
    assert [one.severity for one in findings] == ([severity] if severity else [])


def test_without_the_memory_of_the_gpu_it_abstains():
    given = made(20.0, gpus=[gpu(gpu_memory_used_bytes=UNSUPPORTED)])
    assert isinstance(judged(memory_saved_with_time, given), Abstention)


def test_no_other_rule_says_it_again():
    assert judged(known_activity, made(40.0)) == []
