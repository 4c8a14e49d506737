"""The table of the drivers of a run's GPUs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from explain.scenario_parts import NodePart, gpu, scenario
from teho.explain.analysis import Analysis
from teho.model.device import Device, DeviceFact
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.show.build.report.document import build_report
from teho.show.build.report.drivers import driver_table
from teho.show.text.document import render_text
from top.frames import AT, node

OLD = Missing(Reason.UNSUPPORTED, "the driver is too old")


def run_of(*facts: Sequence[DeviceFact]) -> Run:
    """Return a run whose nodes have 4 GPUs each, with these facts."""
    nodes = []
    for number, (driver, platform, compute_mode) in enumerate(facts):
        made = node(f"g{number}")
        devices = tuple(
            msgspec.structs.replace(
                device, driver=driver, platform=platform, compute_mode=compute_mode
            )
            for device in made.devices
        )
        nodes.append(msgspec.structs.replace(made, devices=devices))
    return Run(format=1, id="r", command=("x",), started_at=AT, host="g0", nodes=tuple(nodes))


USUAL = ("550.54.15", "CUDA 12.4", "default")


def test_equal_gpus_are_one_row() -> None:
    (table,) = driver_table(run_of(*[USUAL] * 4, ("535.1", "CUDA 12.2", "default")))
    assert table.level == "why"
    assert table.rows == (
        {"model": "NVIDIA H100", "driver": "550.54.15", "platform": "CUDA 12.4",
         "compute_mode": "default", "gpus": 16, "nodes": "4 nodes"},
        {"model": "NVIDIA H100", "driver": "535.1", "platform": "CUDA 12.2",
         "compute_mode": "default", "gpus": 4, "nodes": "g4"},
    )  # fmt: skip


def test_a_fact_that_is_missing_has_its_reason() -> None:
    (table,) = driver_table(run_of((OLD, "CUDA 11.0", None)))
    (row,) = table.rows
    assert row["driver"] == OLD
    assert isinstance(row["compute_mode"], Missing)
    assert row["compute_mode"].reason is Reason.UNRECORDED


def test_an_older_recording_has_no_table() -> None:
    assert list(driver_table(run_of((None, None, None)))) == []


def test_only_the_report_with_reasons_shows_it() -> None:
    run, summary = scenario(NodePart(gpus=(gpu(80.0),)))
    (first,) = run.nodes
    devices = [msgspec.structs.replace(one, driver="550.54.15") for one in first.devices]
    first = msgspec.structs.replace(first, devices=tuple(devices))
    report = build_report(
        Analysis(msgspec.structs.replace(run, nodes=(first,)), RunState.FINISHED, summary)
    )
    assert "550.54.15" not in render_text(report, width=100, color=False)
    assert "550.54.15" in render_text(report, width=100, color=False, detail="why")


@pytest.mark.parametrize("facts", [{}, {"driver": OLD, "platform": "CUDA 12.4"}])
def test_a_description_with_or_without_the_facts_can_be_read(facts: dict[str, DeviceFact]) -> None:
    device = Device(id="GPU-0", index=0, name="NVIDIA H100", vendor="nvidia", **facts)
    content = msgspec.json.encode(device)
    assert (b"driver" in content) == bool(facts)
    assert msgspec.json.decode(content, type=Device) == device
