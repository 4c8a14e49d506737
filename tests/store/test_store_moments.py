"""The rows of a node at any moment."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from teho.store import moments as moments_module
from teho.store.journal import Journal
from teho.store.layout import create_run_directory
from teho.store.moments import NodeMoments
from teho.store.pack import seal

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)
KINDS = {"node": ("cpu_busy_percent",), "gpu": ("gpu_busy_percent",)}


def row(device: str, elapsed_s: float, span_s: float, **values: float) -> dict[str, Any]:
    return {
        "kind": "node" if device == "node" else "gpu", "device": device, "node": "n1",
        "elapsed_s": elapsed_s, "span_s": span_s, "time": START + timedelta(seconds=elapsed_s),
        **values,
    }  # fmt: skip


@pytest.fixture(params=["sealed", "growing"])
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Rows of 1 s, a gap of 8 s, and a row of 4 s; the second GPU appears late."""
    directory = create_run_directory(tmp_path, "20261120-100000-a-aaaa", b"{}")
    journal = Journal(directory, "n1")
    for end_s, span_s in ((1.0, 1.0), (2.0, 1.0), (14.0, 4.0)):
        journal.append([row("node", end_s, span_s, cpu_busy_percent=10 * end_s, job_cpu_s=end_s)])
        journal.append([row("GPU-a", end_s, span_s, gpu_busy_percent=end_s, gpu_power_w=7 * end_s)])
    journal.append([row("GPU-b", 14.0, 4.0, gpu_busy_percent=50.0)])
    journal.close()
    if request.param == "sealed":
        assert seal(directory, "n1")
    return directory


@pytest.mark.parametrize(
    ("moment_s", "row_s", "at_s"),
    [
        (0.0, 1.0, 0.0),
        (0.5, 1.0, 0.5),
        (1.0, 1.0, 1.0),
        (1.5, 2.0, 1.5),
        (6.0, 2.0, 2.0),  # the gap
        (10.0, 14.0, 10.0),
        (12.0, 14.0, 12.0),
        (99.0, 14.0, 14.0),
    ],
)
def test_the_row_that_covers_a_moment(
    run: Path, moment_s: float, row_s: float, at_s: float
) -> None:
    found = NodeMoments(run, "n1", KINDS).at(moment_s)
    assert found is not None
    assert (found.sample.elapsed_s, found.at_s) == (row_s, at_s)
    rows = {one["device"]: one for one in found.sample.rows}
    assert rows["node"]["cpu_busy_percent"] == 10 * row_s
    assert rows["GPU-a"]["gpu_busy_percent"] == row_s
    assert ("GPU-b" in rows) == (row_s == 14.0)


def test_the_sample_before(run: Path) -> None:
    node = NodeMoments(run, "n1", KINDS)
    first, last = node.at(0.5), node.at(12.0)
    assert first is not None
    assert first.before is None
    assert last is not None
    assert last.before is not None
    assert [one["job_cpu_s"] for one in last.before.rows if one["device"] == "node"] == [2.0]
    assert node.at(13.0) == last._replace(at_s=13.0)
    assert node.last_s == 14.0


def test_other_columns_are_read_once_when_one_is_needed(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    real = moments_module.rows_of_node

    def counted(*arguments: Any, **others: Any) -> Any:
        read.append(arguments[2])
        return real(*arguments, **others)

    monkeypatch.setattr(moments_module, "rows_of_node", counted)
    node = NodeMoments(run, "n1", KINDS)
    found = node.at(1.0)
    assert found is not None
    gpu = next(one for one in found.sample.rows if one["device"] == "GPU-a")
    assert gpu.get("gpu_busy_percent") == 1.0
    assert read == ["node", "gpu"]
    assert gpu["gpu_power_w"] == 7.0
    assert gpu.get("gpu_temperature_c") is None
    assert "gpu_temperature_c" not in gpu
    assert dict(gpu)["elapsed_s"] == 1.0
    assert read == ["node", "gpu", "gpu"]


def test_the_newest_rows_of_a_device(run: Path) -> None:
    node = NodeMoments(run, "n1", KINDS)
    assert [one["elapsed_s"] for one in node.newest("GPU-a", 3.0, 10)] == [1.0, 2.0]
    assert [one["gpu_power_w"] for one in node.newest("GPU-a", 99.0, 1)] == [98.0]
    assert node.newest("GPU-c", 99.0, 1) == []


def test_a_node_without_rows(run: Path) -> None:
    node = NodeMoments(run, "n2", KINDS)
    assert node.at(1.0) is None
    assert node.last_s == 0.0
