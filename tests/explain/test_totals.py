"""Figures of a whole run against sums of a witness; what lacks a part is missing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.scenario_parts import UNSUPPORTED, NodePart, gpu, scenario, step
from teho.explain.totals import cores_used, energy_of, lacking, mean_of
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.model.summary import GpuSummary, Stat

BUSY = "gpu_busy_percent"


def one(stat, energy_j=1.0):
    return GpuSummary(
        device=Device(id="g", index=0, name="H100", vendor="nvidia"),
        position=0,
        stats={} if stat is None else {BUSY: stat},
        energy_j=energy_j,
        series={},
    )


STATS = st.one_of(
    st.just(UNSUPPORTED),
    st.builds(
        lambda mean, covered_s: Stat(mean, 0.0, mean, mean, covered_s),
        st.floats(0, 100),
        st.just(0.0) | st.floats(0.01, 1e6),
    ),
)


@given(st.lists(STATS, min_size=1, max_size=20))
def test_mean_is_weighted_by_the_time_that_was_seen(stats):
    found = mean_of([one(stat) for stat in stats], BUSY)
    known = [stat for stat in stats if isinstance(stat, Stat)]
    if not known:
        assert found == UNSUPPORTED
        return
    # A witness of its own: integrals over integrals, GPU by GPU.
    area, time = 0.0, 0.0
    for stat in known:
        area += stat.mean * stat.covered_s
        time += stat.covered_s
    expected = area / time if time > 0 else sum(stat.mean for stat in known) / len(known)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
    low, high = min(stat.mean for stat in known), max(stat.mean for stat in known)
    assert low - 1e-9 <= found <= high + 1e-9


def test_a_metric_that_was_not_read_is_missing():
    assert isinstance(mean_of([one(None)], BUSY), Missing)
    assert isinstance(mean_of([], BUSY), Missing)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=30))
def test_energies_add_up(energies):
    assert energy_of([one(None, energy) for energy in energies]) == pytest.approx(sum(energies))


def test_a_part_that_is_missing_makes_the_sum_missing():
    reason = Missing(Reason.UNSUPPORTED, "no counter")
    assert energy_of([one(None, 5.0), one(None, reason)]) == reason


def test_cores_of_several_nodes():
    run, summary = scenario(NodePart("a", cores_used=3.0), NodePart("b", cores_used=4.5))
    assert cores_used(run, summary) == 7.5
    node = msgspec.structs.replace(summary.nodes[0], cpu_cores_used=UNSUPPORTED)
    summary = msgspec.structs.replace(summary, nodes=(node, summary.nodes[1]))
    assert cores_used(run, summary) == UNSUPPORTED


def test_a_node_without_a_recording_makes_every_sum_missing():
    run, summary = scenario(NodePart("a", gpus=[gpu()]), step=step(3, "a", "b", "c"))
    expected = Missing(Reason.UNRECORDED, "b and c left no recording")
    assert lacking(run) == cores_used(run, summary) == expected
    assert lacking(scenario(NodePart("a"))[0]) is None


def test_without_any_node():
    run, summary = scenario()
    assert isinstance(cores_used(run, summary), Missing)
