from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import nvml_stub
import pytest
from nvml_bench import ACTIVITY, GPU_METRICS, JOB_BUSY, MIB, NVLINK, ONE, PCIE, RARE, RATES
from nvml_stub import RECEIVE_PER_PERCENT, SEND_PER_PERCENT, Scenario, gpu_uuid, mig_uuid

from teho.model.missing import Missing, Reason

GPM = {
    "gpu_sm_active_percent": (2, 1),
    "gpu_sm_occupancy_percent": (3, 1),
    "gpu_integer_percent": (4, 1),
    "gpu_tensor_percent": (5, 1),
    "gpu_dram_percent": (10, 1),
    "gpu_fp64_percent": (11, 1),
    "gpu_fp32_percent": (12, 1),
    "gpu_fp16_percent": (13, 1),
    "gpu_nvlink_receive_bytes_per_s": (60, MIB),
    "gpu_nvlink_send_bytes_per_s": (61, MIB),
}
"""Metrics, NVML's numbers for them, and what NVML's unit is in ours."""


def expected(scenario: Scenario, gpu: int, now_s: float, before_s: float) -> dict[str, object]:
    step = scenario.at(gpu, now_s)
    busy = scenario.busy_percent_s(gpu, now_s) - scenario.busy_percent_s(gpu, before_s)
    mean_busy = busy / (now_s - before_s)
    gpm = {
        name: pytest.approx(scale * scenario.gpm_mean(gpu, metric, before_s, now_s), rel=1e-3)
        for name, (metric, scale) in GPM.items()
    }
    return {
        **gpm,
        "gpu_busy_percent": int(step.busy_percent),
        "gpu_memory_busy_percent": int(step.busy_percent) // 2,
        "gpu_memory_used_bytes": step.used_bytes,
        "gpu_power_w": pytest.approx(step.power_w),
        "gpu_energy_j": pytest.approx(scenario.energy_j(gpu, now_s), rel=1e-6, abs=0.001),
        "gpu_sm_clock_mhz": int(step.clock_mhz),
        "gpu_memory_clock_mhz": 2619,
        "gpu_temperature_c": int(step.temperature_c),
        "gpu_thermal_throttle_percent": 100 if step.throttle & 0x60 else 0,
        "gpu_power_throttle_percent": 100 if step.throttle & 0x84 else 0,
        "gpu_pcie_receive_bytes_per_s": pytest.approx(mean_busy * RECEIVE_PER_PERCENT, abs=2),
        "gpu_pcie_send_bytes_per_s": pytest.approx(mean_busy * SEND_PER_PERCENT, abs=2),
        "gpu_job_processes": 0,
        "gpu_job_memory_bytes": 0,
        "gpu_job_busy_percent": 0,
        "gpu_ecc_corrected": 0,
        "gpu_ecc_uncorrected": 0,
        "gpu_nvlink_errors": 0,
        "gpu_xid_errors": 0,
    }


@pytest.mark.parametrize(
    "name", ["h100x8_busy", "h100x8_one_idle", "h100_used_at_first", "h100_never_used"]
)
def test_every_figure_is_the_scenarios_own(bench, name):
    scenario = Scenario.load(name)
    source = bench.open(name)
    assert [device.id for device in source.devices] == [gpu_uuid(n) for n in range(scenario.gpus)]
    before_s = 0.0
    first = bench.read(source, before_s)
    assert all(set(values) == GPU_METRICS - RATES for values in first.values())
    for now_s in (1.0, 3.5, 45.0, 55.25, 130.0):
        readings = bench.read(source, now_s)
        for gpu in range(scenario.gpus):
            values = readings[gpu_uuid(gpu)]
            figures = expected(scenario, gpu, now_s, before_s)
            if now_s < 130:
                # The sixth sample reads it anew; until then the first one's stands.
                figures["gpu_temperature_c"] = int(scenario.at(gpu, 0).temperature_c)
            assert values == {name: figures[name] for name in values}
            assert set(figures) - set(values) <= RARE
        before_s = now_s


def test_slow_metrics_are_read_at_every_fifth_sample_and_reported_at_each(bench):
    """Told at those alone, it would be taken for something that was hardly ever recorded."""
    source = bench.open(ONE)
    asked = bench.count_calls("nvmlDeviceGetTemperature")
    for second in range(20):
        values = bench.read(source, second)[gpu_uuid(0)]
        assert values["gpu_temperature_c"] == 50
    assert len(asked) == 4


def test_a_failure_is_reported_until_the_metric_is_read_again(bench):
    source = bench.open(ONE.plus("fail nvmlDeviceGetTemperature 0 TIMEOUT"))
    for second in range(7):
        missing = bench.read(source, second)[gpu_uuid(0)]["gpu_temperature_c"]
        assert isinstance(missing, Missing)
        assert missing.reason is Reason.FAILED


def test_a_whole_run_at_each_second_has_the_traces_energy_and_load(bench):
    scenario = Scenario.load("h100x8_busy")
    source = bench.open(scenario)
    rows = [bench.read(source, float(second)) for second in range(121)]
    for gpu in range(8):
        own = [row[gpu_uuid(gpu)] for row in rows]
        energy_j = own[-1]["gpu_energy_j"] - own[0]["gpu_energy_j"]
        assert energy_j == pytest.approx(scenario.energy_j(gpu, 120), rel=0.001)
        mean = sum(row["gpu_busy_percent"] for row in own[:-1]) / 120
        assert mean == pytest.approx(scenario.busy_percent_s(gpu, 120) / 120)
        assert {row["gpu_power_throttle_percent"] for row in own} == {0, 100}


def test_static_facts_are_read_once(bench):
    numa = bench.root / "sys/bus/pci/devices/0000:17:00.0/numa_node"
    unknown = bench.root / "sys/bus/pci/devices/0000:27:00.0/numa_node"
    for path, text in ((numa, "1\n"), (unknown, "-1\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    source = bench.open("h100x8_busy")
    second = source.devices[1]
    assert (second.index, second.name, second.vendor) == (1, "NVIDIA H100 80GB HBM3", "nvidia")
    assert second.memory_bytes == 81559 * MIB
    assert (second.power_limit_w, second.power_default_w) == (700, 700)
    assert second.pci_bus_id == "0000:17:00.0"
    assert [device.numa_node for device in source.devices[:3]] == [None, 1, None]
    assert source.notes == ()


def test_an_old_gpu_and_driver_give_what_they_have(bench):
    scenario = Scenario.load("v100x4")
    source = bench.open(scenario)
    asked = bench.count_calls("nvmlDeviceGetCurrentClocksEventReasons")
    sampled = bench.count_calls("nvmlDeviceGetPcieThroughput")
    seconds: list[int] = []
    for second in range(25):
        before = len(sampled)
        for gpu, values in enumerate(bench.read(source, float(second)).values()):
            assert GPU_METRICS - set(values) <= {*PCIE, JOB_BUSY} | RARE
            lacking = {name for name, value in values.items() if isinstance(value, Missing)}
            assert lacking == ACTIVITY | NVLINK
            assert (set(values) >= PCIE) == (second >= gpu)
        assert len(sampled) - before in {0, 2}, "one GPU at a time, since the call is slow"
        seconds += [second] * (len(sampled) > before)
    assert len(asked) == 4, "asked once of each GPU, never again"
    assert seconds == [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    step = scenario.at(0, 20)
    last = bench.read(source, 30 + 20)[gpu_uuid(0)]
    assert last["gpu_power_w"] == step.power_w
    assert last["gpu_energy_j"] == pytest.approx(scenario.energy_j(0, 50))
    assert last["gpu_temperature_c"] == step.temperature_c
    assert last["gpu_thermal_throttle_percent"] == last["gpu_power_throttle_percent"] == 100
    # The old memory call counts the driver's reserve.
    assert last["gpu_memory_used_bytes"] == (20480 + 512) * MIB


def test_pcie_counters_that_cost_much_are_read_rarely(bench):
    bench.count_calls("nvmlDeviceGetFieldValues", cost_s=0.0004)
    scenario = Scenario.load("h100x8_busy").plus("fail nvmlGpmQueryDeviceSupport * NOT_SUPPORTED")
    source = bench.open(scenario)
    seconds = {}
    for second in range(21):
        for id_, values in bench.read(source, float(second)).items():
            if set(values) >= PCIE:
                seconds.setdefault(id_, []).append((second, values))
    # GPU 1 is first asked at 1 s; its figure at 11 s is the mean of the ten seconds, and stands
    # until there is another.
    assert [second for second, _ in seconds[gpu_uuid(1)]] == list(range(11, 21))
    busy = scenario.busy_percent_s(1, 11) - scenario.busy_percent_s(1, 1)
    for _, values in seconds[gpu_uuid(1)]:
        received = values["gpu_pcie_receive_bytes_per_s"]
        assert received == pytest.approx(busy / 10 * RECEIVE_PER_PERCENT)


NO_GPM = ONE.plus("fail nvmlGpmQueryDeviceSupport * NOT_SUPPORTED")


def test_a_pcie_counter_that_wraps_gives_no_figure(bench):
    source = bench.open(NO_GPM)
    bench.read(source, 10)
    # The counters follow the clock of the stub; putting that back alone is a wrap.
    bench.at(5)
    bench.now_s = 11
    assert not PCIE & set(source.read(frozenset())[gpu_uuid(0)])
    bench.at(6)
    bench.now_s = 12
    received = source.read(frozenset())[gpu_uuid(0)]["gpu_pcie_receive_bytes_per_s"]
    assert received == 50 * RECEIVE_PER_PERCENT


def test_mig_instances_are_the_devices(bench):
    source = bench.open("a100_mig")
    first, second, whole = source.devices
    assert [device.id for device in source.devices] == [mig_uuid(0, 0), mig_uuid(0, 1), gpu_uuid(1)]
    assert (first.parent_id, second.parent_id, whole.parent_id) == (gpu_uuid(0), gpu_uuid(0), None)
    assert (first.index, second.index) == (0, 1)
    assert first.name == "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    assert first.memory_bytes == 40960 * MIB // 8
    assert first.pci_bus_id == "0000:07:00.0"
    bench.read(source, 0)
    readings = bench.read(source, 10)
    part = readings[mig_uuid(0, 0)]
    assert set(part) == GPU_METRICS
    assert part["gpu_memory_used_bytes"] == 16384 * MIB // 8
    assert part["gpu_job_processes"] == 0
    assert part["gpu_sm_clock_mhz"] == 1410
    lacking = {name for name, value in part.items() if isinstance(value, Missing)}
    assert lacking == RATES | {
        "gpu_busy_percent",
        "gpu_memory_busy_percent",
        "gpu_temperature_c",
        "gpu_power_w",
        "gpu_energy_j",
        "gpu_thermal_throttle_percent",
        "gpu_power_throttle_percent",
        "gpu_ecc_corrected",
        "gpu_ecc_uncorrected",
        "gpu_nvlink_errors",
    }
    assert {part[name].reason for name in lacking} == {Reason.UNSUPPORTED}
    assert "whole GPU" in part["gpu_energy_j"].detail
    assert readings[gpu_uuid(1)]["gpu_energy_j"] == pytest.approx(3110)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("0", [mig_uuid(0, 0), mig_uuid(0, 1)]),
        ("1", [gpu_uuid(1)]),
        (mig_uuid(0, 1), [mig_uuid(0, 1)]),
        (f"MIG-{gpu_uuid(0)}/8/0", [mig_uuid(0, 1)]),
        (gpu_uuid(1)[:12], [gpu_uuid(1)]),
    ],
)
def test_only_the_jobs_own_devices_are_read(bench, text, ids):
    source = bench.open("a100_mig", CUDA_VISIBLE_DEVICES=text)
    assert [device.id for device in source.devices] == ids
    assert list(bench.read(source, 1)) == ids


def test_closing_twice_lets_go_once(bench):
    first = bench.open("h100x8_busy")
    second = bench.open("h100x8_busy")
    first.close()
    first.close()
    assert first.read(frozenset()) == {}
    assert bench.read(second, 1)[gpu_uuid(0)]["gpu_busy_percent"] == 92


def test_the_energy_of_a_superchip_is_the_modules_and_its_power_is_not(bench):
    scenario = Scenario.load("gh200x2")
    source = bench.open(scenario)
    assert source.notes == (
        "the energy counter of a GH200 measures the whole module, including its CPU",
    )
    assert {device.energy_of for device in source.devices} == {"module"}
    before = bench.read(source, 0)[gpu_uuid(1)]
    after = bench.read(source, 60)[gpu_uuid(1)]
    energy_j = after["gpu_energy_j"] - before["gpu_energy_j"]
    assert energy_j == pytest.approx(scenario.energy_j(1, 60)) == pytest.approx((560 + 150) * 60)
    # What takes the power for the counter's, as for any other GPU, is a quarter off.
    assert after["gpu_power_w"] == 560


PROGRAM = """
import json, os, time
from teho.devices.nvidia.source import NvidiaSource

source = NvidiaSource(os.environ)
source.read(frozenset())
before_s = time.monotonic()
readings = source.read(frozenset({os.getpid()}))
after_s = time.monotonic()
energy_j = {id_: values["gpu_energy_j"] for id_, values in readings.items()}
print(json.dumps([before_s, after_s, energy_j]))
"""


def test_another_process_finds_the_library_and_agrees_on_the_time(nvml_library, tmp_path):
    scenario = Scenario.load("h100x8_busy")
    path = scenario.write(tmp_path / "scenario.txt")
    epoch_s = time.monotonic() - 100
    variables = nvml_stub.environment(nvml_library, path, epoch_s)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **variables, "CUDA_VISIBLE_DEVICES": "6,1"},
        capture_output=True,
        text=True,
        check=True,
    )
    before_s, after_s, energy_j = json.loads(done.stdout)
    assert list(energy_j) == [gpu_uuid(6), gpu_uuid(1)]
    for gpu in (6, 1):
        least = scenario.energy_j(gpu, before_s - epoch_s)
        most = scenario.energy_j(gpu, after_s - epoch_s)
        assert least - 0.002 <= energy_j[gpu_uuid(gpu)] <= most + 0.002
