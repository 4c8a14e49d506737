"""Energy in the report, and what is left out."""

from __future__ import annotations

import msgspec
import pytest

from explain.scenario_parts import UNSUPPORTED, NodePart, gpu, scenario
from teho.config.electricity import Electricity
from teho.explain.analysis import Analysis
from teho.explain.energy import count_once
from teho.model.missing import Missing
from teho.model.run import RunState
from teho.model.summary import GpuEnergy
from teho.show.build.report.document import build_report
from teho.show.text.document import render_text
from teho.show.text.seff import render_seff

J_PER_KWH = 3.6e6


def view_of(made, electricity: Electricity = Electricity()):  # noqa: B008 - it cannot change
    run, summary = made
    return build_report(Analysis(run, RunState.FINISHED, summary, electricity=electricity))


def table_of(view, key: str):
    return next((table for table in view.tables if table.key == key), None)


def fact_of(view, key: str):
    return next((fact for fact in view.facts if fact.key == key), None)


def changed(made, **energy):
    """Return the run with other parts of its first GPU's energy."""
    run, summary = made
    node = summary.nodes[0]
    first = node.gpus[0]
    device = msgspec.structs.replace(
        first.device, **{key: energy.pop(key) for key in ("energy_of",) if key in energy}
    )
    behind = msgspec.structs.replace(first.energy, **energy)
    gpus = (msgspec.structs.replace(first, device=device, energy=behind), *node.gpus[1:])
    nodes = (msgspec.structs.replace(node, gpus=gpus), *summary.nodes[1:])
    return run, msgspec.structs.replace(summary, nodes=nodes)


ONE = scenario(NodePart(gpus=[gpu(gpu_power_w=[70.0] * 30 + [400.0] * 30)]))


def test_gross_idle_and_net_are_three_figures():
    (row,) = table_of(view_of(ONE), "gpu_energy").rows
    assert row["gross"] == pytest.approx(235 * 3600)
    assert (row["idle"], row["idle_power"]) == (pytest.approx(70 * 3600), 70)
    assert row["net"] == pytest.approx(165 * 3600)
    assert (row["source"], row["apart"]) == ("counter", 0)
    assert row["uncertainty"] == pytest.approx(40)


def test_the_sum_says_how_sure_it_is_if_that_matters():
    assert fact_of(view_of(ONE), "gpu_energy_j").note == ""  # a tick in an hour
    made = scenario(NodePart(gpus=[gpu(gpu_power_w=400.0)] * 2), elapsed_s=5.0)
    assert fact_of(view_of(made), "gpu_energy_j").note == "± 2.0 %"


def test_the_sum_with_a_gpu_that_was_lost_is_the_least():
    assert fact_of(view_of(changed(ONE, unread_s=90.0)), "gpu_energy_j").note == "at least"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Net is too low"),
        ({"stuck_s": 30.0}, "counter stopped"),
        ({"unread_s": 90.0}, "GPU 0 could not be read for the last 1 min 30 s: the energy is at l"),
        ({"energy_of": "module"}, "with its CPU cores"),
        ({"energy_of": "package"}, "another job may have used it"),
        ({"energy_of": "package", "shares_with": (1,)}, "each value is the energy of both GPUs"),
    ],
)
def test_the_note_says_what_has_to_be_known(changes, words):
    assert words in table_of(view_of(changed(ONE, **changes)), "gpu_energy").note


def test_a_baseline_of_an_unused_gpu_needs_no_word():
    note = table_of(view_of(changed(ONE, idle_is_unused=True)), "gpu_energy").note
    assert "too low" not in note
    assert "module" not in note
    assert "still" not in note


def test_without_any_energy_there_is_no_table_and_the_fact_says_why():
    view = view_of(scenario(NodePart(gpus=[gpu(gpu_power_w=UNSUPPORTED)])))
    assert table_of(view, "gpu_energy") is None
    assert fact_of(view, "gpu_energy_j").value == UNSUPPORTED


def test_power_replaces_a_counter_and_is_named():
    run, summary = ONE
    node = summary.nodes[0]
    integrated = msgspec.structs.replace(node.gpus[0], energy_source="integrated power")
    node = msgspec.structs.replace(node, gpus=(integrated,))
    view = view_of((run, msgspec.structs.replace(summary, nodes=(node,))))
    table = table_of(view, "gpu_energy")
    assert table.rows[0]["source"] == "power"
    assert "energy is power times time" in table.note


def test_a_silent_die_is_not_in_the_sum_and_not_missing_from_it():
    run, summary = scenario(NodePart(gpus=[gpu(), gpu()], vendor="amd"))
    node = summary.nodes[0]
    dies = [
        msgspec.structs.replace(
            of, device=msgspec.structs.replace(of.device, package_id="c1", energy_of=kind)
        )
        for of, kind in zip(node.gpus, ("package", "device"), strict=True)
    ]
    dies[1] = msgspec.structs.replace(dies[1], energy_j=UNSUPPORTED, energy=GpuEnergy())
    node = msgspec.structs.replace(node, gpus=count_once(dies))
    view = view_of((run, msgspec.structs.replace(summary, nodes=(node,))))
    assert fact_of(view, "gpu_energy_j").value == dies[0].energy_j
    first, second = table_of(view, "gpu_energy").rows
    assert first["gross"] == dies[0].energy_j
    assert (second.get("gross"), second["source"]) == (None, "GPU 0")
    text = render_text(view, width=80, color=False, detail="why")
    assert "counted with the other GPU of its card" in " ".join(text.split())
    assert "N/A" in render_seff(view)


def test_whole_nodes_are_separate():
    rates = {"cpu_energy_j": 180.0, "node_energy_j": 900.0}
    view = view_of(scenario(NodePart("a", gpus=[gpu()], rates=rates), NodePart("b")))
    first, second = table_of(view, "node_energy").rows
    assert (first["cpu"], first["node_total"]) == (180 * 3600, 900 * 3600)
    assert first["source"] == "counter"
    assert isinstance(first["memory"], Missing)
    assert isinstance(second["node_total"], Missing)
    # The energy of the GPUs does not include it.
    assert fact_of(view, "gpu_energy_j").value == pytest.approx(230 * 3600)
    by_power = view_of(scenario(NodePart(signals={"node_power_w": 800.0})))
    (row,) = table_of(by_power, "node_energy").rows
    assert (row["node_total"], row["source"]) == (pytest.approx(800 * 3600), "power")
    assert table_of(view_of(ONE), "node_energy") is None


def test_carbon_and_cost_are_never_guessed():
    view = view_of(ONE)
    assert fact_of(view, "gpu_carbon_g") is None
    assert fact_of(view, "gpu_energy_cost") is None


def test_carbon_and_cost_by_the_sites_own_figures():
    electricity = Electricity(carbon_g_per_kwh=70, price_per_kwh=0.2, currency="EUR", pue=1.5)
    view = view_of(ONE, electricity)
    kwh = 235 * 3600 / J_PER_KWH * 1.5
    carbon, cost = fact_of(view, "gpu_carbon_g"), fact_of(view, "gpu_energy_cost")
    assert (carbon.value, carbon.unit) == (pytest.approx(kwh * 70), "gCO2e")
    assert (cost.value, cost.unit) == (pytest.approx(kwh * 0.2), "EUR")
    for fact in (carbon, cost):
        assert "only for the GPUs" in fact.note
        assert "PUE 1.5" in fact.note
    only = view_of(ONE, Electricity(carbon_g_per_kwh=0.0))
    assert fact_of(only, "gpu_carbon_g").value == 0
    assert fact_of(only, "gpu_energy_cost") is None


def test_what_is_not_known_emits_nothing():
    made = scenario(NodePart(gpus=[gpu(gpu_power_w=UNSUPPORTED)]))
    assert fact_of(view_of(made, Electricity(carbon_g_per_kwh=70)), "gpu_carbon_g") is None
