"""The activity of GPUs: a column for each reported metric; a missing value is not zero."""

from __future__ import annotations

import pytest

from explain.scenario_parts import DEEP, UNSUPPORTED, NodePart, gpu, scenario
from teho.explain.analysis import Analysis
from teho.model.missing import Missing
from teho.model.run import RunState
from teho.show.build.report.document import build_report
from teho.show.text.document import render_text


def view_of(*gpus, **given):
    run, summary = scenario(NodePart(gpus=gpus, **given))
    return build_report(Analysis(run, RunState.FINISHED, summary))


def table_of(view):
    return next((table for table in view.tables if table.key == "gpu_activity"), None)


def facts_of(view):
    return {fact.key: fact for fact in view.facts}


def test_means_of_all_reported_metrics():
    view = view_of(gpu(80.0, gpu_sm_active_percent=40.0, gpu_tensor_percent=12.5))
    (row,) = table_of(view).rows
    assert (row["sm_active"], row["tensor"], row["dram"]) == (
        40.0,
        12.5,
        pytest.approx(80 * 42 / 92),
    )
    assert "integer" not in row
    fact = facts_of(view)["gpu_sm_active_percent"]
    assert (fact.label, fact.value, fact.unit, fact.note) == ("SM activity", 40.0, "%", "")


def test_without_any_of_it_there_is_no_table_and_no_fact():
    view = view_of(gpu(**dict.fromkeys(DEEP, UNSUPPORTED)))
    assert table_of(view) is None
    assert "gpu_sm_active_percent" not in facts_of(view)
    assert "gpu_busy_percent" in facts_of(view)


def test_amd_reports_how_many_compute_units_had_work():
    missing = dict.fromkeys(DEEP[1:], UNSUPPORTED)
    table = table_of(view_of(gpu(gpu_sm_active_percent=55.0, **missing), vendor="amd"))
    assert [column.key for column in table.columns] == ["node", "gpu", "sm_active"]
    assert table.note.startswith("The column SM shows the share of the multiprocessors")
    assert "Tensor" not in table.note


def test_one_gpu_that_does_not_report_is_missing_not_zero():
    view = view_of(gpu(gpu_sm_active_percent=60.0), gpu(gpu_sm_active_percent=UNSUPPORTED))
    assert [row["sm_active"] for row in table_of(view).rows] == [60.0, UNSUPPORTED]
    fact = facts_of(view)["gpu_sm_active_percent"]
    assert (fact.value, fact.note) == (60.0, "1 of 2 GPUs")


def test_the_verdict_of_mig_instances_is_what_of_them_was_in_use():
    slices = [gpu(UNSUPPORTED, gpu_sm_active_percent=share) for share in (85.0, 95.0)]
    assert view_of(*slices).verdict.startswith("The 2 GPUs used 90 % of their multip")
    assert view_of(gpu(UNSUPPORTED, gpu_sm_active_percent=UNSUPPORTED)).verdict.startswith(
        "The program kept "
    )


def test_a_gpu_that_was_not_asked_is_missing():
    silent = gpu()
    del silent["gpu_sm_active_percent"]
    first, second = table_of(view_of(gpu(), silent)).rows
    assert isinstance(first["sm_active"], float)
    assert isinstance(second["sm_active"], Missing)


def test_of_many_the_outlier_is_marked():
    gpus = [gpu(gpu_sm_active_percent=90.0 + number % 3) for number in range(16)]
    gpus[5] = gpu(gpu_sm_active_percent=20.0)
    run, summary = scenario(NodePart("a", gpus=gpus[:8]), NodePart("b", gpus=gpus[8:]))
    table = table_of(build_report(Analysis(run, RunState.FINISHED, summary)))
    assert table.outliers == (5,)
    assert table.rows[5]["stands_out"] == "less active"


def test_it_is_shown_with_the_busy_share():
    text = render_text(view_of(gpu(99.0, gpu_sm_active_percent=9.0)), width=80, color=False,
                       detail="why")  # fmt: skip
    assert "GPU busy 99 % · SM activity 9.0 %" in text
    assert text.index("\nGPUs") < text.index("\nWhat the GPUs did") < text.index("\nCPU")
    assert max(map(len, text.splitlines())) <= 80
