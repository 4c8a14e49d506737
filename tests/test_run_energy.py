"""Energy of a recorded run, from the driver's stand-in to the report."""

from __future__ import annotations

import json
from pathlib import Path

import nvml_stub
import pytest
from nvml_stub import Scenario


def reported(teho, nvml_library: Path, tmp_path: Path, scenario: Scenario, **more: str) -> dict:
    environment = nvml_stub.environment(nvml_library, scenario.write(tmp_path / "scenario.txt"))
    done = teho("run", "-q", "--every", "500ms", "--", "sleep", "3", env=environment)
    assert done.returncode == 0
    return json.loads(teho("report", "--format", "json", env=more).stdout)


def fact(report: dict, key: str) -> dict:
    return next(fact for fact in report["facts"] if fact["key"] == key)


def energy_rows(report: dict) -> list[dict]:
    (table,) = [table for table in report["tables"] if table["key"] == "gpu_energy"]
    return table["rows"]


STEADY = Scenario(("gpus 2", "processes 0 parent", "0 * 50 1000 400", "0 1 50 1000 250"))


def test_counter_and_power_agree_and_carbon_is_the_files(
    teho, nvml_library, tmp_path: Path
) -> None:
    file = tmp_path / "electricity.toml"
    file.write_text("carbon_g_per_kwh = 100\nprice_per_kwh = 0.3\ncurrency = 'EUR'\n")
    report = reported(teho, nvml_library, tmp_path, STEADY, TEHO_ELECTRICITY=str(file))
    for row, power_w in zip(energy_rows(report), (400, 250), strict=True):
        assert row["source"] == "counter"
        assert row["gross"] == pytest.approx(row["integrated"], rel=0.05)
        assert row["idle_power"] == power_w
        assert row["net"] < 0.05 * row["gross"]
        assert abs(row["apart"]) < 5
    energy_j = fact(report, "gpu_energy_j")["value"]
    assert energy_j == pytest.approx(sum(row["gross"] for row in energy_rows(report)))
    assert fact(report, "gpu_carbon_g")["value"] == pytest.approx(energy_j / 3.6e6 * 100)
    assert fact(report, "gpu_energy_cost")["unit"] == "EUR"
    assert "energy_disagrees" not in {finding["kind"] for finding in report["findings"]}


def test_without_a_counter_it_is_power_times_time(teho, nvml_library, tmp_path: Path) -> None:
    scenario = STEADY.plus("fail nvmlDeviceGetTotalEnergyConsumption * NOT_SUPPORTED")
    report = reported(teho, nvml_library, tmp_path, scenario)
    for row, power_w in zip(energy_rows(report), (400, 250), strict=True):
        assert row["source"] == "power"
        # The recorder's own start-up is not covered.
        assert 0.3 * power_w * 3 < row["gross"] <= 1.05 * power_w * 3
        assert row["gross"] == row["integrated"]
        assert row["apart"]["reason"] == "unsupported"


def test_a_module_counter_is_explained_and_not_called_wrong(
    teho, nvml_library, tmp_path: Path
) -> None:
    report = reported(teho, nvml_library, tmp_path, Scenario.load("gh200x2"))
    (table,) = [table for table in report["tables"] if table["key"] == "gpu_energy"]
    assert "measures the whole module, with its CPU cores" in table["note"]
    for row in table["rows"]:
        assert row["gross"] == pytest.approx(row["integrated"] * 710 / 560, rel=0.1)
        assert row["apart"]["reason"] == row["net"]["reason"] == "unsupported"
    assert "energy_disagrees" not in {finding["kind"] for finding in report["findings"]}
