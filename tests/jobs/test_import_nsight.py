"""Captures of Nsight Systems: its GPU metrics, and the times of kernels."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from jobs.imports import LOGS, absence, column, imported, notes, only, rows, run_of, written
from teho.errors import InputError
from teho.model.missing import Reason


def test_nsys_stats() -> None:
    directory = only(LOGS / "nsys-stats.csv")
    (node,) = run_of(directory).nodes
    (gpu,) = node.devices
    assert (gpu.index, gpu.vendor) == (0, "nvidia")
    assert gpu.name == "NVIDIA RTX 5000 Ada Generation Laptop GPU"
    found = rows(directory, gpu.id)
    # From the first operation to the last one, in four steps. Four kernels ran for 27.425 µs.
    length_s = (1502833457 + 504112 - 1134711990) / 1e9
    assert sum(row["span_s"] for row in found) == pytest.approx(length_s, abs=2e-3)
    # A recording has no smaller share than 0.1 %, and the GPU was used.
    assert [row["gpu_busy_percent"] for row in found] == pytest.approx([0.1, 0, 0, 0.1], abs=0.01)
    said = notes(directory)
    assert "from the times of the kernels" in said
    assert "--cuda-graph-trace=node" in said
    assert "not from nsys stats" not in said


TRACE_HEAD = "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n"


def trace(*operations: tuple[float, float, int, str]) -> str:
    """Return a table with these operations: begin and length in ms, GPU, name."""
    return TRACE_HEAD + "".join(
        f"{begin * 1e6:.0f},{length * 1e6:.0f},1,NVIDIA A100 ({gpu}),7,{name}\n"
        for begin, length, gpu, name in operations
    )


def test_kernels_that_overlap_count_once(tmp_path: Path) -> None:
    text = trace(
        (1000, 400, 0, "a"), (1100, 400, 0, '"b<int, 2>(float *, int)"'), (1050, 10, 0, "c"),
        (2000, 1000, 0, "d"), (1000, 500, 1, "[CUDA memcpy Host-to-Device]"), (2500, 250, 1, "e"),
    )  # fmt: skip
    directory = only(written(tmp_path, "trace.csv", text), every_s=7.0)
    run = run_of(directory)
    assert run.end is not None
    assert run.end.elapsed_s == pytest.approx(2.0)
    assert run.end.at.isoformat() == "2026-11-18T11:06:40+00:00"
    spans = [row["span_s"] for row in rows(directory, "gpu-0")]
    assert spans == pytest.approx([0.1] * 20, abs=1e-3)
    busy = column(directory, "gpu-0", "gpu_busy_percent")
    assert busy == pytest.approx([100] * 5 + [0] * 5 + [100] * 10, abs=0.1)
    # A copy is no work of the GPU's cores.
    other = column(directory, "gpu-1", "gpu_busy_percent")
    assert other == pytest.approx([0] * 15 + [100, 100, 50, 0, 0], abs=0.1)


@pytest.mark.parametrize(("unit", "per_ns"), [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("nsec", 1)])
def test_times_in_other_units(tmp_path: Path, unit: str, per_ns: float) -> None:
    table = TRACE_HEAD.replace("(ns)", f"({unit})")
    for begin, length in ((0, 5e8), (9e8, 1e8)):
        table += f"{begin / per_ns},{length / per_ns},1,H100 (3),7,k\n"
    directory = only(written(tmp_path, "trace.csv", table))
    busy = column(directory, "gpu-3", "gpu_busy_percent")
    assert busy == pytest.approx([100] * 5 + [0] * 4 + [100], abs=0.1)


def test_other_tables_in_the_file_are_not_used(tmp_path: Path) -> None:
    text = (
        "\nProcessing [x.sqlite] with [cuda_gpu_kern_sum.py]...\n\n"
        " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "100.0,7072,1,7072.0,7072,7072,7072,0.0,k\n\n"
        " ** CUDA GPU Trace (cuda_gpu_trace):\n\n"
        + trace((0, 1000, 0, "k"), (1000, 1000, 0, "[CUDA memset]"))
        + "\n ** NVTX Push/Pop Range Trace (nvtx_pushpop_trace):\n\n"
        "Start (ns),End (ns),Duration (ns),DurChild (ns),DurNonChild (ns),Name,PID,TID,Lvl\n"
        "0,900000000000,1,0,1,:step,53,53,0\n"
    )
    directory = only(written(tmp_path, "stats.csv", text))
    busy = column(directory, "gpu-0", "gpu_busy_percent")
    assert busy == pytest.approx([100] * 10 + [0] * 10, abs=0.1)
    assert "not from nsys stats" not in notes(directory)


@pytest.mark.parametrize(
    "text",
    [
        " ** CUDA API Summary (cuda_api_sum):\n\nTime (%),Total Time (ns),Name\n1,2,x\n",
        "Time (%)  Total Time (ns)  Instances  Name\n--------  ------\n   100.0  7072  1  k\n",
        "Start (ns)  Duration (ns)  CorrId  Device  Strm  Name\n----------  ---\n",
        "Start (ns),End (ns),Duration (ns),Name,PID\n1,2,1,:step,53\n",
    ],
)
def test_tables_without_times_of_kernels_name_the_right_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="cuda_gpu_trace --format csv"):
        imported(written(tmp_path, "stats.txt", text))


def test_a_trace_without_kernels_is_refused(tmp_path: Path) -> None:
    text = trace((0, 10, 0, "[CUDA memcpy Host-to-Device]"))
    with pytest.raises(InputError, match="--cuda-graph-trace=node"):
        imported(written(tmp_path, "trace.csv", text))


def test_rows_that_are_no_operations_are_skipped(tmp_path: Path) -> None:
    text = trace((0, 1000, 0, "k")) + "epoch 1 loss 0.1\n-5,1,1,A (0),7,k\nx,y,1,A (0),7,k\n"
    directory = only(written(tmp_path, "trace.csv", text + "nan,inf,1,A (0),7,k\n"))
    assert "4 lines of trace.csv are not from nsys stats" in notes(directory)


def test_nsight_systems() -> None:
    directory = only(LOGS / "nsight-systems.sqlite")
    run = run_of(directory)
    (node,) = run.nodes
    assert (node.name, run.started_at.isoformat()) == ("g1101", "2026-11-20T09:00:00.500000+00:00")
    assert [device.memory_bytes for device in node.devices] == [42298834944] * 2
    first, second = (one.id for one in node.devices)
    # Two samples in each 0.1 s, of 90 and 100 %.
    assert column(directory, first, "gpu_busy_percent") == [95.0] * 12
    assert column(directory, first, "gpu_sm_active_percent") == [76.0] * 12
    assert column(directory, first, "gpu_tensor_percent") == [19.0] * 12
    assert column(directory, first, "gpu_sm_occupancy_percent") == [38.0] * 12
    assert column(directory, first, "gpu_dram_percent") == [47.5 + 9.5] * 12
    assert column(directory, first, "gpu_sm_clock_mhz") == [1410.0] * 12
    assert column(directory, second, "gpu_busy_percent") == [0.0] * 12
    assert absence(directory, first, "gpu_power_w")[0] is Reason.UNRECORDED
    said = notes(directory)
    assert "GR Active" in said
    assert "Compute Warps in Flight [Avg Warps per Cycle]" in said
    assert "SM Issue [Throughput %]" in said


def database(path: Path, *statements: str) -> Path:
    """Copy the database of Nsight Systems, and change it."""
    shutil.copy(LOGS / "nsight-systems.sqlite", path)
    with contextlib.closing(sqlite3.connect(path)) as found:
        for statement in statements:
            found.execute(statement)
        found.commit()
    return path


def test_older_exports_of_nsight_systems(tmp_path: Path) -> None:
    path = database(
        tmp_path / "a b?.sqlite",
        "UPDATE TARGET_INFO_GPU_METRICS "
        "SET metricName = replace(metricName, ' [Throughput %]', '')",
        "DROP TABLE TARGET_INFO_SESSION_START_TIME",
        "DROP TABLE TARGET_INFO_SYSTEM_ENV",
        "UPDATE TARGET_INFO_GPU SET name = 'NVIDIA H100' WHERE id = 1",
        "UPDATE GPU_METRICS SET value = value / 1000000 WHERE metricId = 0",
    )
    directory = only(path)
    (node,) = run_of(directory).nodes
    # Two different models: it is not known which of them has which number.
    assert [device.memory_bytes for device in node.devices] == [None, None]
    assert column(directory, node.devices[0].id, "gpu_sm_active_percent") == [76.0] * 12
    assert column(directory, node.devices[0].id, "gpu_sm_clock_mhz") == [1410.0] * 12
    # Without a unit, these may be warps, or bytes.
    for metric in ("gpu_sm_occupancy_percent", "gpu_dram_percent"):
        assert column(directory, node.devices[0].id, metric) == [None] * 12


def test_nsight_systems_of_an_a100() -> None:
    """One kernel on a node of a supercomputer, with copies of unified memory before and after."""
    directory = only(LOGS / "nsight-systems-a100.sqlite")
    run = run_of(directory)
    (node,) = run.nodes
    (gpu,) = node.devices
    assert node.name == "nid001029"
    assert (gpu.name, gpu.memory_bytes) == ("NVIDIA A100-SXM4-40GB", 42297524224)
    assert run.started_at.timestamp() == pytest.approx(1684405961.402 + 0.773, abs=0.01)
    assert run.end is not None
    assert run.end.elapsed_s == pytest.approx((7641290847 - 773208828) / 1e9, abs=1e-3)
    found = rows(directory, gpu.id)
    busy_s = sum(row["gpu_busy_percent"] / 100 * row["span_s"] for row in found)
    assert busy_s == pytest.approx((7073534567 - 773208828) / 1e9, abs=0.02)
    assert found[0]["gpu_busy_percent"] == pytest.approx(100, abs=0.1)
    assert found[-1]["gpu_busy_percent"] == 0


def test_nsight_systems_with_a_clock_above_2147_mhz() -> None:
    directory = only(LOGS / "nsight-systems-gb20x.sqlite")
    first, second = (one.id for one in run_of(directory).nodes[0].devices)
    clocks = column(directory, first, "gpu_sm_clock_mhz")
    assert clocks[:4] == pytest.approx([2532, 2393, 2379, 2300], abs=1)
    active = column(directory, second, "gpu_sm_active_percent")
    assert active[:4] == pytest.approx([20.58, 0.01, 49.93, 89.93], abs=0.05)
    assert absence(directory, first, "gpu_busy_percent")[0] is Reason.UNRECORDED


def test_clocks_above_31_bits_are_no_negative_numbers(tmp_path: Path) -> None:
    """A real export of 2025.3.2 has 2,600 MHz as -1694967296."""
    path = database(
        tmp_path / "x.sqlite",
        "UPDATE GPU_METRICS SET value = -1694967296 WHERE metricId = 0 AND timestamp % 100000000",
        "UPDATE GPU_METRICS SET value = 2000000000 WHERE metricId = 0 AND value > 0",
    )
    directory = only(path)
    clocks = column(directory, run_of(directory).nodes[0].devices[0].id, "gpu_sm_clock_mhz")
    assert all(2000 <= clock <= 2600 for clock in clocks)
    assert any(clock > 2000 for clock in clocks)


KERNELS = (
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER)",
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER)",
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (500000000, 1500000000, 0)",
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1500000000, 2500000000, 1)",
)


def test_a_capture_without_gpu_metrics_has_the_times_of_kernels(tmp_path: Path) -> None:
    path = database(tmp_path / "x.sqlite", "DROP TABLE GPU_METRICS", *KERNELS)
    directory = only(path)
    run = run_of(directory)
    (node,) = run.nodes
    assert (node.name, run.started_at.isoformat()) == ("g1101", "2026-11-20T09:00:01+00:00")
    first, second = (one.id for one in node.devices)
    busy = column(directory, first, "gpu_busy_percent")
    assert busy == pytest.approx([100] * 10 + [0] * 10, abs=0.1)
    assert column(directory, second, "gpu_busy_percent") == [0] * 20
    assert "from the times of the kernels" in notes(directory)
    assert "GR Active" not in notes(directory)


def test_a_graph_that_was_traced_as_a_whole_is_work(tmp_path: Path) -> None:
    path = database(
        tmp_path / "x.sqlite",
        "DROP TABLE GPU_METRICS",
        "DROP TABLE TARGET_INFO_SESSION_START_TIME",
        *KERNELS,
        "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INT, end INT, deviceId INT)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (2000000000, 2500000000, 0)",
    )
    directory = only(path)
    first = run_of(directory).nodes[0].devices[0].id
    busy = column(directory, first, "gpu_busy_percent")
    assert busy == pytest.approx([100] * 10 + [0] * 5 + [100] * 5, abs=0.1)
    assert "ended when the file was last changed" in notes(directory)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TABLE GPU_METRICS", "has no table GPU_METRICS, and no times of kernels"),
        ("UPDATE TARGET_INFO_GPU_METRICS SET metricName = 'x'", "has no metric that Teho knows"),
        ("DELETE FROM GPU_METRICS", "has no samples of the GPUs"),
        ("ALTER TABLE GPU_METRICS DROP COLUMN value", "no such column: value"),
    ],
)
def test_other_databases_are_refused(tmp_path: Path, statement: str, words: str) -> None:
    path = database(tmp_path / "x.sqlite", statement)
    with pytest.raises(InputError, match=words):
        imported(path)


def test_a_report_of_nsight_systems_has_to_be_exported(tmp_path: Path) -> None:
    path = written(tmp_path, "train.nsys-rep", "QDSTRM")
    with pytest.raises(InputError, match=r"`nsys export --type sqlite .*train\.nsys-rep` writes"):
        imported(path)
