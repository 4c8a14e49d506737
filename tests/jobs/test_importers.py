"""Every format that `teho import` reads, with a log of each tool."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobs.imports import LOGS, absence, column, imported, notes, only, rows, run_of, written
from teho.jobs.importer import importers
from teho.model.missing import Reason
from teho.model.run import RunState
from teho.store.read import run_state

MIB = 2**20


@pytest.fixture(autouse=True)
def utc() -> Iterator[None]:
    """Read times without a zone in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_each_format_has_a_log_and_each_log_an_origin() -> None:
    assert list(importers()) == [
        "jobstats", "prometheus", "nsys-stats", "nvidia-smi-query", "nvidia-smi-dmon",
        "dcgmi-dmon", "rocm-smi", "amd-smi", "wandb", "nsight-systems",
    ]  # fmt: skip
    origins = (LOGS / "README.md").read_text()
    logs = [path for path in LOGS.iterdir() if path.name != "README.md"]
    assert len(logs) > 15
    assert all(f"`{path.name}`" in origins for path in logs)


def test_nvidia_smi_query() -> None:
    directory = only(LOGS / "nvidia-smi-l.csv")
    run = run_of(directory)
    assert run_state(run, directory) is RunState.FINISHED
    assert (run.command, run.host, run.environment) == ((), "", {})
    assert run.end is not None
    assert (run.end.exit_code, run.end.signal) == (None, None)
    assert run.end.elapsed_s == pytest.approx(3.012, abs=0.002)
    assert run.imported is not None
    assert (run.imported.tools, run.imported.files) == (("nvidia-smi",), ("nvidia-smi-l.csv",))
    (node,) = run.nodes
    assert (node.name, node.cores, node.allocation.cores_asked) == ("unknown-host", (), None)
    assert [(one.id, one.index, one.vendor) for one in node.devices] == [
        ("gpu-0", 0, "nvidia"), ("gpu-1", 1, "nvidia"),
    ]  # fmt: skip
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0, 98, 99]
    assert column(directory, "gpu-0", "gpu_power_w") == pytest.approx([187.8, 912.1, 930])
    # The last round has only GPU 0, and the second power of GPU 1 is [N/A].
    assert column(directory, "gpu-1", "gpu_busy_percent") == [0, 97, None]
    assert column(directory, "gpu-1", "gpu_power_w") == [pytest.approx(191, abs=0.05), None, None]
    assert column(directory, "gpu-0", "gpu_memory_clock_mhz") == [3996, 3996, 3996]
    assert absence(directory, "gpu-0", "gpu_sm_active_percent") == (
        Reason.UNRECORDED, "the log of nvidia-smi does not contain the necessary data",
    )  # fmt: skip
    assert absence(directory, "node", "job_cpu_s")[0] is Reason.UNRECORDED
    assert "have no time zone" in notes(directory)


def test_nvidia_smi_without_a_column_for_the_gpu() -> None:
    directory = only(LOGS / "nvidia-smi-no-index.csv")
    (node,) = run_of(directory).nodes
    assert [one.memory_bytes for one in node.devices] == [23028 * MIB] * 4
    used = [column(directory, f"gpu-{n}", "gpu_memory_used_bytes")[0] for n in range(4)]
    assert used == [21 * MIB, 7 * MIB, 7 * MIB, 7 * MIB]
    assert "By their times, the rows are from 4 GPUs in turn." in notes(directory)
    assert "pstate, memory.free" in notes(directory)


def test_csc_log_without_times(tmp_path: Path) -> None:
    text = (LOGS / "nvidia-smi-csc.log").read_text()
    head, *round_ = text.splitlines()
    path = written(tmp_path, "gpu.log", "\n".join([head, *round_, *round_, *round_]))
    directory = only(path, every_s=5.0)
    run = run_of(directory)
    assert len(run.nodes[0].devices) == 4
    assert run.end is not None
    assert run.end.elapsed_s == 15
    assert run.end.at.isoformat() == "2026-11-18T11:06:40+00:00"
    assert [row["span_s"] for row in rows(directory, "gpu-3")] == [5, 5, 5]
    assert "The log has no times. Teho counts 5.0 s between two samples" in notes(directory)


def test_nvidia_smi_without_names_of_columns() -> None:
    names = "timestamp,index,utilization.gpu,memory.total,memory.used,power.draw"
    directory = only(LOGS / "nvidia-smi-noheader.csv", columns=names)
    assert column(directory, "gpu-0", "gpu_memory_used_bytes")[1] == 30000 * MIB
    assert absence(directory, "gpu-0", "gpu_power_w") == (
        Reason.UNSUPPORTED, "nvidia-smi printed [N/A]",
    )  # fmt: skip


def test_dmon_with_times() -> None:
    directory = only(LOGS / "nvidia-smi-dmon-DT.txt")
    run = run_of(directory)
    assert run.started_at.isoformat() == "2024-01-04T13:54:34+00:00"
    assert column(directory, "gpu-0", "gpu_busy_percent") == [6, 0, 3, 13, 0, 3]
    assert column(directory, "gpu-0", "gpu_memory_used_bytes")[0] == 239 * MIB
    assert column(directory, "gpu-0", "gpu_pcie_send_bytes_per_s")[1] == pytest.approx(
        677e6, rel=1e-3
    )
    assert "bar1, ccpm, enc, dec, jpg, ofa" in notes(directory)


def test_dmon_without_times() -> None:
    directory = only(LOGS / "nvidia-smi-dmon.txt", every_s=1.0)
    assert column(directory, "gpu-0", "gpu_power_w")[3:5] == [270, 274]
    assert "1 line of nvidia-smi-dmon.txt is not from nvidia-smi dmon" in notes(directory)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        # Only times, over midnight; the day is that of the file's last change.
        (
            "# Time gpu pwr\n# HH:MM:SS Idx W\n 23:59:59 0 37\n 00:00:00 0 39\n 00:00:02 0 39\n",
            [1.5, 1, 2],
        ),
        # The CSV of newer drivers.
        (
            "#gpu, pwr, gtemp, sm, mem\n#Idx, W, C, %, %\n 0, 70, 48, 5, -\n 0, 71, 48, 6, -\n",
            [2, 2],
        ),
    ],
)
def test_further_forms_of_dmon(tmp_path: Path, text: str, spans: list[float]) -> None:
    directory = only(written(tmp_path, "dmon.txt", text), every_s=2.0)
    assert [row["span_s"] for row in rows(directory, "gpu-0")] == spans
    run = run_of(directory)
    assert run.end is not None
    assert run.end.at.timestamp() <= 1_795_000_000


def test_dcgmi() -> None:
    directory = only(LOGS / "dcgmi-dmon.txt", every_s=1.0)
    # ESVTL and EDVTL are counters: the first row is their zero.
    assert column(directory, "gpu-0", "gpu_power_w") == pytest.approx([20.9, 20.9, 21, 21])
    assert column(directory, "gpu-0", "gpu_ecc_corrected") == [0, 0, 0, 0]


def test_dcgmi_shares_become_percent(tmp_path: Path) -> None:
    text = (
        "# Entity  GRACT   SMACT   TENSO   TOTEC      FBUSD  FBTTL  PMLMT\n"
        "      Id                          mJ\n"
        "    GPU 0 N/A     0.5     0.25    2.07e+11   1024   81920  700\n"
        "    GPU 0 0.984   0.930   0.252   2.0700e+11 1024   81920  700\n"
        "    GPU 0 0.984   0.930   0.252   207000300000 1024 81920  700\n"
        "  GPU-I 3 0.984   0.930   0.252   1          1024   81920  700\n"
    )
    directory = only(written(tmp_path, "dcgm.txt", text), every_s=1.0)
    (gpu,) = run_of(directory).nodes[0].devices
    assert (gpu.memory_bytes, gpu.power_limit_w) == (81920 * MIB, 700)
    assert column(directory, "gpu-0", "gpu_sm_active_percent") == [93, 93]
    assert column(directory, "gpu-0", "gpu_tensor_percent") == pytest.approx([25.2, 25.2])
    assert column(directory, "gpu-0", "gpu_energy_j") == [0, 300]
    assert column(directory, "gpu-0", "gpu_busy_percent") == pytest.approx([98.4, 98.4])


def test_first_sample_of_a_profiling_field_is_missing() -> None:
    directory = only(LOGS / "dcgmi-dmon-profiling.txt", every_s=1.0)
    assert column(directory, "gpu-0", "gpu_dram_percent") == [None, 0, 0]


@pytest.mark.parametrize("name", ["rocm-smi.json", "rocm-smi.csv"])
def test_rocm_smi(name: str) -> None:
    directory = only(LOGS / name)
    first, second = run_of(directory).nodes[0].devices
    assert (first.vendor, first.memory_bytes, second.memory_bytes) == (
        "amd", 34208743424, 4294967296,
    )  # fmt: skip
    assert column(directory, "gpu-0", "gpu_busy_percent")[:2] == [3, 47]
    assert column(directory, "gpu-1", "gpu_memory_used_bytes")[0] == 72495104
    assert rows(directory, "gpu-0")[0]["span_s"] == 10


def test_rocm_smi_of_a_desktop() -> None:
    directory = only(LOGS / "rocm-smi-rx7900xt.csv", every_s=10.0)
    (gpu,) = run_of(directory).nodes[0].devices
    assert (gpu.name, gpu.memory_bytes, gpu.architecture) == (
        "Radeon RX 7900 XT", 21458059264, "gfx1100",
    )  # fmt: skip
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0]
    assert column(directory, "gpu-0", "gpu_memory_used_bytes") == [27856896]


def test_rocm_smi_prefers_the_junction() -> None:
    directory = only(LOGS / "rocm-smi.json")
    assert column(directory, "gpu-0", "gpu_temperature_c")[0] == 36
    assert column(directory, "gpu-1", "gpu_temperature_c")[0] == 39
    assert column(directory, "gpu-1", "gpu_power_w")[0] == pytest.approx(12.1)
    assert [one.name for one in run_of(directory).nodes[0].devices] == ["0x7551", ""]
    assert "Card SKU" in notes(directory)


def test_amd_smi_csv() -> None:
    directory = only(LOGS / "amd-smi-watch.csv")
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0, 95]
    assert column(directory, "gpu-0", "gpu_temperature_c") == [44, 78]
    assert column(directory, "gpu-1", "gpu_power_w") == [290, None]
    assert run_of(directory).started_at.timestamp() == 1789515523


def test_amd_smi_energy() -> None:
    directory = only(LOGS / "amd-smi-energy.csv")
    assert run_of(directory).started_at.timestamp() == 1722959154
    # The first answer is the zero of the counters.
    assert column(directory, "gpu-0", "gpu_energy_j") == pytest.approx(
        [42.664, 85.372, 128.075], abs=0.01
    )
    assert column(directory, "gpu-1", "gpu_energy_j") == pytest.approx(
        [43.128, 86.317, 129.505], abs=0.01
    )


def test_amd_smi_usage() -> None:
    directory = only(LOGS / "amd-smi-usage.json", every_s=5.0)
    assert column(directory, "gpu-0", "gpu_busy_percent") == [42]
    assert column(directory, "gpu-0", "gpu_memory_busy_percent") == [1]
    assert absence(directory, "gpu-0", "gpu_power_w")[0] is Reason.UNRECORDED


def test_amd_smi_json_after_lines_with_times() -> None:
    directory = only(LOGS / "amd-smi.json")
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0, 10, 20]
    assert column(directory, "gpu-0", "gpu_memory_used_bytes") == [283 * MIB] * 3
    assert column(directory, "gpu-0", "gpu_sm_clock_mhz") == [135, 135, 135]
    assert run_of(directory).nodes[0].devices[0].memory_bytes == 294896 * MIB


def test_amd_smi_json_with_watch(tmp_path: Path) -> None:
    def answer(second: int) -> str:
        use = {"gfx_activity": {"value": 10 * second, "unit": "%"}}
        return json.dumps([{"gpu": 0, "timestamp": 1789515520 + second, "usage": use}])

    text = "\n".join(map(answer, range(4)))
    directory = only(written(tmp_path, "amd.json", text + '\n[{"gpu": 0, "usa'))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [0, 10, 20, 30]


def test_wandb() -> None:
    directory = only(LOGS / "wandb-events.jsonl")
    assert column(directory, "gpu-0", "gpu_busy_percent") == [80, 90, 85]
    assert column(directory, "gpu-1", "gpu_memory_used_bytes") == [1_000_000_000] * 3
    assert column(directory, "gpu-0", "gpu_memory_busy_percent") == [30, 30, 30]
    assert "system.cpu, system.proc.memory.rssMB" in notes(directory)
    of_csv = only(LOGS / "wandb-events.csv")
    assert column(of_csv, "gpu-0", "gpu_memory_used_bytes") == [2_000_000_000, 2_500_000_000]


def test_wandb_of_2020() -> None:
    directory = only(LOGS / "wandb-events-2020.jsonl")
    run = run_of(directory)
    assert run.end is not None
    assert run.end.at.timestamp() == 1582071062
    assert column(directory, "gpu-0", "gpu_busy_percent") == pytest.approx(
        [4.07, 5.6, 7.13, 4.47, 5.47], abs=0.05
    )
    assert column(directory, "gpu-0", "gpu_power_w") == pytest.approx(
        [27.79, 28.17, 28.53, 28.82, 29.03], abs=0.06
    )
    # Only the share of the memory is in these lines.
    assert absence(directory, "gpu-0", "gpu_memory_used_bytes")[0] is Reason.UNRECORDED


def test_jobstats(tmp_path: Path) -> None:
    path = shutil.copy(LOGS / "jobstats.json", tmp_path)
    directory = only(Path(path))
    run = run_of(directory)
    (node,) = run.nodes
    assert (run.host, node.name) == ("della-k1g1", "della-k1g1")
    assert (node.allocation.cores_asked, node.allocation.gpus_held) == (12, 1)
    assert node.allocation.memory_limit_bytes == 128 * 1024**3
    assert run.end is not None
    assert run.end.elapsed_s == 50944
    (host,) = rows(directory, "node")
    assert host["job_cpu_s"] == pytest.approx(57620.8, abs=0.01)
    assert "job_memory_bytes" not in host
    assert host["job_memory_bytes_max"] == 84683702272
    (gpu,) = rows(directory, node.devices[0].id)
    assert gpu["gpu_busy_percent"] == pytest.approx(98.6, abs=0.01)
    assert gpu["span_s"] == 50944
    assert gpu["gpu_memory_used_bytes_max"] == 83314868224


def test_prometheus_of_jobstats() -> None:
    directory = only(LOGS / "prometheus-jobstats.json")
    (node,) = run_of(directory).nodes
    own = node.allocation
    assert (own.scheduler, own.job_id, own.cores_asked) == ("slurm", "60155093", 12)
    assert own.memory_limit_bytes == 128 * 1024**3
    (gpu,) = node.devices
    assert (gpu.id, gpu.index) == ("GPU-6e7a0fa1-0770-c210-1a5c-8710bc09ce00", 1)
    assert (gpu.name, gpu.memory_bytes) == ("NVIDIA A100-SXM4-80GB", 80 * 1024**3)
    # The series of the two exporters are one GPU; the first sample is the zero of the counters.
    assert column(directory, gpu.id, "gpu_busy_percent") == [97, 99, 100]
    assert column(directory, gpu.id, "gpu_power_w") == pytest.approx([312.4, None, 330])
    assert column(directory, gpu.id, "gpu_energy_j") == [9372, 19000, 28900]
    assert column(directory, gpu.id, "gpu_sm_active_percent") == [62, 65, 66]
    assert column(directory, "node", "job_cpu_s") == pytest.approx([29.7, 61.4, 91.5], abs=0.02)
    assert column(directory, "node", "job_memory_bytes") == [2 * 1024**3, 2 * 1024**3, 1024**3]
    assert "DCGM_FI_DEV_XID_ERRORS" in notes(directory)


def test_prometheus_of_slurm_job_exporter() -> None:
    directory = only(LOGS / "prometheus-slurm-job-exporter.json")
    (node,) = run_of(directory).nodes
    assert (node.name, node.allocation.job_id) == ("ng10601", "4711")
    assert column(directory, "gpu-0", "gpu_power_w") == [260, 255, 250]
    # The CPU time is the sum of the cores.
    assert column(directory, "node", "job_cpu_s") == [60, 120, 180]


def test_prometheus_of_omnistat() -> None:
    directory = only(LOGS / "prometheus-omnistat.json")
    (node,) = run_of(directory).nodes
    assert (node.name, node.devices[0].vendor, node.allocation.job_id) == (
        "x1921c0s0b0n0", "amd", None,
    )  # fmt: skip
    assert column(directory, "gpu-0", "gpu_temperature_c") == [61] * 4
    assert column(directory, "gpu-0", "gpu_memory_used_bytes") == [34351349760] * 4


@pytest.mark.parametrize(
    "name",
    ["prometheus-real-slurm-job-exporter.json", "victoriametrics-slurm-job-exporter.jsonl"],
)
def test_answers_of_real_stores_for_slurm_job_exporter(name: str) -> None:
    directory = only(LOGS / name)
    (node,) = run_of(directory).nodes
    own = node.allocation
    assert (node.name, own.job_id, own.memory_limit_bytes) == ("ng1", "2", 51539607552)
    (gpu,) = node.devices
    assert (gpu.index, gpu.name) == (0, "NVIDIA A100-SXM4-40GB")
    values = {
        "gpu_sm_active_percent": 92.6, "gpu_sm_occupancy_percent": 67.8, "gpu_dram_percent": 42.8,
        "gpu_tensor_percent": 0.67, "gpu_fp32_percent": 35.7, "gpu_power_w": 248.5,
        "gpu_memory_used_bytes": 15548284928,
    }  # fmt: skip
    for metric, value in values.items():
        found = column(directory, gpu.id, metric)
        assert found == pytest.approx([value] * len(found), rel=0.05), metric
        assert len(found) >= 4
    # With DCGM, the exporter has no share of time with a kernel.
    assert absence(directory, gpu.id, "gpu_busy_percent")[0] is Reason.UNRECORDED
    assert set(column(directory, "node", "job_processes")) == {10}


def test_answers_of_a_real_prometheus() -> None:
    directory = only(LOGS / "prometheus-real-nvidia-gpu.json")
    (gpu,) = run_of(directory).nodes[0].devices
    assert (gpu.name, gpu.memory_bytes) == ("GeForce GTX 950", 2092171264)
    assert column(directory, gpu.id, "gpu_power_w") == pytest.approx([13.24] * 5, abs=0.06)
    assert column(directory, gpu.id, "gpu_busy_percent") == [0] * 5
    directory = only(LOGS / "prometheus-real-omnistat.json")
    (node,) = run_of(directory).nodes
    assert [device.index for device in node.devices] == [0, 1, 2, 3]
    edge = [column(directory, device.id, "gpu_temperature_c")[0] for device in node.devices]
    assert edge == [54, 40, 43, 38]
    assert "node_uptime_secs" in notes(directory)
    directory = only(LOGS / "prometheus-real-dcgm.json")
    (gpu,) = run_of(directory).nodes[0].devices
    assert gpu.id == "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"
    assert column(directory, gpu.id, "gpu_sm_clock_mhz") == [139] * 5
    assert "DCGM_FI_DEV_MEMORY_TEMP" in notes(directory)


def test_export_of_victoriametrics(tmp_path: Path) -> None:
    lines = [
        {
            "metric": {"__name__": name, "instance": "g1:9400", "gpu": "0"},
            "values": values,
            "timestamps": [1795000000000, 1795000030000, 1795000060250],
        }
        for name, values in (
            ("DCGM_FI_DEV_GPU_UTIL", [5, 97, 99]),
            ("DCGM_FI_DEV_POWER_USAGE", [60.5, 310.25, None]),
        )
    ]
    text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
    directory = only(written(tmp_path, "export.jsonl", text))
    assert column(directory, "gpu-0", "gpu_busy_percent") == [5, 97, 99]
    assert column(directory, "gpu-0", "gpu_power_w") == pytest.approx([60.5, 310.2, None], abs=0.06)
    end = run_of(directory).end
    assert end is not None
    assert end.at.timestamp() == 1795000060.25


def test_counter_of_a_core_that_ends_or_is_reset(tmp_path: Path) -> None:
    def series(core: str, *values: tuple[int, float]) -> str:
        pairs = ", ".join(f'[{at}, "{value * 1e9}"]' for at, value in values)
        name = '"__name__": "slurm_job_core_usage_total"'
        return (
            f'{{"metric": {{{name}, "core": "{core}", "instance": "n1:1", "slurmjobid": "7"}}, '
            f'"values": [{pairs}]}}'
        )

    both = ", ".join(
        (series("0", (100, 50), (130, 60), (160, 5)), series("1", (100, 0), (130, 30)))
    )
    text = f'{{"status": "success", "data": {{"resultType": "matrix", "result": [{both}]}}}}'
    directory = only(written(tmp_path, "q.json", text))
    assert column(directory, "node", "job_cpu_s") == [40, 45]


def test_several_nodes_are_one_run(tmp_path: Path) -> None:
    for host in ("g1", "g2"):
        text = "timestamp, index, utilization.gpu [%]\n" + "".join(
            f"2026/11/18 10:00:{second:02d}.000, 0, {second} %\n" for second in range(20)
        )
        written(tmp_path, f"{host}.csv", text)
    directory = only(tmp_path / "g1.csv", tmp_path / "g2.csv", name="two nodes")
    run = run_of(directory)
    assert (run.name, run.host) == ("two nodes", "g1")
    assert [node.name for node in run.nodes] == ["g1", "g2"]
    assert "Teho uses the name of the file, g2." in notes(directory)


def test_given_host_joins_files(tmp_path: Path) -> None:
    seconds = range(0, 40, 2)
    written(tmp_path, "a.csv", "timestamp, index, utilization.gpu [%]\n" + "".join(
        f"2026/11/18 10:00:{second:02d}.000, 0, {second} %\n" for second in seconds))  # fmt: skip
    written(tmp_path, "b.txt", "#Date       Time        gpu   pwr\n#YYYYMMDD  HH:MM:SS Idx W\n" +
        "".join(f" 20261118  10:00:{second:02d}  0  {second}\n" for second in seconds))  # fmt: skip
    directory = only(tmp_path / "a.csv", tmp_path / "b.txt", host="g1101.example")
    (node,) = run_of(directory).nodes
    assert (node.name, len(node.devices)) == ("g1101.example", 1)
    values = [row for row in rows(directory, "gpu-0") if row["elapsed_s"] > 10]
    assert {"gpu_busy_percent", "gpu_power_w"} <= set().union(*values)


def test_log_that_was_continued_hours_later_is_two_runs(tmp_path: Path) -> None:
    lines = ["timestamp, index, utilization.gpu [%]"]
    for hour in (10, 14):
        lines += [f"2026/11/18 {hour}:00:{second:02d}, 0, 50 %" for second in range(30)]
        lines.append("timestamp, index, utilization.gpu [%]")
    first, second = imported(written(tmp_path, "gpu.csv", "\n".join(lines)))
    assert run_of(first).started_at.hour == 9
    assert run_of(second).started_at.isoformat() == "2026-11-18T13:59:59+00:00"
    assert [len(rows(one, "gpu-0")) for one in (first, second)] == [30, 30]


def test_the_page_lists_every_format() -> None:
    page = (LOGS.parents[2] / "docs" / "import.md").read_text()
    rows_of_formats = [line for line in page.splitlines() if line.startswith("| `")]
    named = [line.split("`")[1] for line in rows_of_formats]
    assert set(importers()) <= set(named)
    for importer in importers().values():
        command = importer.title.split(" --")[0]
        assert any(command in line for line in rows_of_formats), command
