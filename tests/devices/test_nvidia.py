from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pynvml
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "stubs"))

import nvml_stub
from nvml_stub import RECEIVE_PER_PERCENT, SEND_PER_PERCENT, Scenario, gpu_uuid, mig_uuid

from teho.devices import nvidia
from teho.devices.nvidia import NvidiaSource
from teho.errors import DeviceError
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason

MIB = 1024**2
GPU_METRICS = {metric.name for metric in metrics_of("gpu")}
PCIE = {"gpu_pcie_receive_bytes_per_s", "gpu_pcie_send_bytes_per_s"}
HOST_NAMESPACE = "pid:[4026531836]"


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory):
    try:
        return nvml_stub.build(tmp_path_factory.mktemp("nvml"))
    except nvml_stub.NoCompilerError as error:
        pytest.skip(str(error))


class Bench:
    """The unmodified pynvml over the stub, in this process, with a clock that we set."""

    def __init__(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.tmp_path = tmp_path
        self.root = tmp_path / "root"
        self.set_namespace(HOST_NAMESPACE)
        self.cpu_s = 0.0
        self.sources: list[NvidiaSource] = []
        library = ctypes.CDLL(str(folder / "libnvidia-ml.so.1"))
        monkeypatch.setattr(pynvml, "nvmlLib", library)
        monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        monkeypatch.setattr(nvidia, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(nvidia, "thread_time", lambda: self.cpu_s)
        self.at(0)

    def at(self, now_s: float) -> None:
        self.now_s = now_s
        self.monkeypatch.setenv("TEHO_STUB_NVML_NOW", repr(now_s))

    def set_namespace(self, text: str) -> None:
        link = self.root / "proc" / "self" / "ns" / "pid"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(text)

    def open(self, scenario: Scenario | str, **environment: str) -> NvidiaSource:
        if isinstance(scenario, str):
            scenario = Scenario.load(scenario)
        path = scenario.write(self.tmp_path / "scenario.txt")
        self.monkeypatch.setenv("TEHO_STUB_NVML", str(path))
        source = NvidiaSource(environment, self.root)
        self.sources.append(source)
        return source

    def read(self, source: NvidiaSource, now_s: float, *pids: int):
        self.at(now_s)
        return source.read(frozenset(pids))

    def count_calls(self, name: str) -> list[None]:
        """Return a list that grows with each call of a function of pynvml."""
        calls: list[None] = []
        function = getattr(pynvml, name)

        def counted(*arguments):
            calls.append(None)
            return function(*arguments)

        self.monkeypatch.setattr(pynvml, name, counted)
        return calls


@pytest.fixture
def bench(stub_folder, tmp_path, monkeypatch):
    bench = Bench(stub_folder, tmp_path, monkeypatch)
    yield bench
    for source in bench.sources:
        source.close()


def expected(scenario: Scenario, gpu: int, now_s: float, before_s: float) -> dict[str, object]:
    step = scenario.at(gpu, now_s)
    busy = scenario.busy_percent_s(gpu, now_s) - scenario.busy_percent_s(gpu, before_s)
    mean_busy = busy / (now_s - before_s)
    return {
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
    assert all(set(values) == GPU_METRICS - PCIE for values in first.values())
    for now_s in (1.0, 3.5, 45.0, 55.25, 130.0):
        readings = bench.read(source, now_s)
        for gpu in range(scenario.gpus):
            assert readings[gpu_uuid(gpu)] == expected(scenario, gpu, now_s, before_s)
        before_s = now_s


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
    assert second.power_limit_w == 700
    assert second.pci_bus_id == "0000:17:00.0"
    assert [device.numa_node for device in source.devices[:3]] == [None, 1, None]
    assert source.notes == ()


def test_an_old_gpu_and_driver_give_what_they_have(bench):
    scenario = Scenario.load("v100x4")
    source = bench.open(scenario)
    asked = bench.count_calls("nvmlDeviceGetTemperatureV")
    sampled: dict[str, list[int]] = {device.id: [] for device in source.devices}
    for second in range(25):
        for id_, values in bench.read(source, float(second)).items():
            assert set(values) in (GPU_METRICS, GPU_METRICS - PCIE)
            assert not any(isinstance(value, Missing) for value in values.values())
            if set(values) >= PCIE:
                sampled[id_].append(second)
    assert len(asked) == 4, "asked once of each GPU, never again"
    # The slow PCIe call is made for one GPU at a time.
    assert sampled == {gpu_uuid(n): [n, n + 10, n + 20] for n in range(4)}
    step = scenario.at(0, 20)
    last = bench.read(source, 30 + 20)[gpu_uuid(0)]
    assert last["gpu_power_w"] == step.power_w
    assert last["gpu_energy_j"] == pytest.approx(scenario.energy_j(0, 50))
    assert last["gpu_temperature_c"] == step.temperature_c
    assert last["gpu_thermal_throttle_percent"] == last["gpu_power_throttle_percent"] == 100
    # The old memory call counts the driver's reserve.
    assert last["gpu_memory_used_bytes"] == (20480 + 512) * MIB


def test_pcie_counters_that_cost_much_are_read_rarely(bench):
    real = pynvml.nvmlDeviceGetFieldValues

    def dear(*arguments):
        bench.cpu_s += 0.0004
        return real(*arguments)

    bench.monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", dear)
    scenario = Scenario.load("h100x8_busy")
    source = bench.open(scenario)
    seconds = {}
    for second in range(21):
        for id_, values in bench.read(source, float(second)).items():
            if set(values) >= PCIE:
                seconds.setdefault(id_, []).append((second, values))
    # GPU 1 is first asked at 1 s; its figure at 11 s is the mean of the ten seconds.
    assert [second for second, _ in seconds[gpu_uuid(1)]] == [11]
    busy = scenario.busy_percent_s(1, 11) - scenario.busy_percent_s(1, 1)
    received = seconds[gpu_uuid(1)][0][1]["gpu_pcie_receive_bytes_per_s"]
    assert received == pytest.approx(busy / 10 * RECEIVE_PER_PERCENT)


def test_a_pcie_counter_that_wraps_gives_no_figure(bench):
    source = bench.open(Scenario(("gpus 1", "0 0 50 100 300")))
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
    assert lacking == {"gpu_busy_percent", "gpu_memory_busy_percent", "gpu_power_w", *PCIE} | {
        "gpu_energy_j",
        "gpu_temperature_c",
        "gpu_thermal_throttle_percent",
        "gpu_power_throttle_percent",
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


def test_an_argument_that_an_instance_does_not_take_is_not_offered(bench):
    refuse = "fail nvmlDeviceGetClockInfo 0 INVALID_ARGUMENT"
    source = bench.open(Scenario.load("a100_mig").plus(refuse))
    clock = bench.read(source, 1)[mig_uuid(0, 0)]["gpu_sm_clock_mhz"]
    assert clock.reason is Reason.UNSUPPORTED


def test_a_lost_gpu_fails_and_the_others_go_on(bench):
    source = bench.open("h100x4_one_lost")
    bench.read(source, 0)
    assert bench.read(source, 4.9)[gpu_uuid(2)]["gpu_power_w"] == 640
    asked = bench.count_calls("nvmlDeviceGetUtilizationRates")
    for now_s in (5.0, 6.0, 700.0):
        readings = bench.read(source, now_s)
        assert set(readings[gpu_uuid(2)]) == GPU_METRICS
        for value in readings[gpu_uuid(2)].values():
            assert isinstance(value, Missing)
            assert value.reason is Reason.FAILED
            assert "lost" in value.detail
        for gpu in (0, 1, 3):
            assert readings[gpu_uuid(gpu)]["gpu_energy_j"] == pytest.approx(640 * now_s)
    assert len(asked) == 3 * 3 + 1, "a lost GPU is not asked again"


def test_a_gpu_of_another_job_is_left_out_with_a_note(bench):
    source = bench.open("h100x4_two_forbidden")
    assert [device.index for device in source.devices] == [1, 3]
    assert source.notes == ("not open to this user, and left out: GPU 0, 2 of this node",)
    # CUDA counts what it can open.
    other = bench.open("h100x4_two_forbidden", CUDA_VISIBLE_DEVICES="1")
    assert [device.id for device in other.devices] == [gpu_uuid(3)]


def test_a_gpu_that_does_not_open_is_told_in_the_drivers_words(bench):
    refuse = "fail nvmlDeviceGetHandleByIndex_v2 1 GPU_IS_LOST"
    source = bench.open(Scenario.load("h100x4_one_lost").plus(refuse))
    assert len(source.devices) == 3
    assert source.notes == ("GPU 1 could not be opened: GPU is lost",)


ONE = Scenario(("gpus 1", "0 0 50 1000 300 1500 50 0"))


@pytest.mark.parametrize(
    ("function", "error", "names", "reason"),
    [
        (
            "nvmlDeviceGetUtilizationRates",
            "NOT_SUPPORTED",
            {"gpu_busy_percent", "gpu_memory_busy_percent"},
            Reason.UNSUPPORTED,
        ),
        (
            "nvmlDeviceGetMemoryInfo_v2",
            "NO_PERMISSION",
            {"gpu_memory_used_bytes"},
            Reason.FORBIDDEN,
        ),
        ("nvmlDeviceGetMemoryInfo_v2", "UNKNOWN", {"gpu_memory_used_bytes"}, Reason.FAILED),
        ("nvmlDeviceGetMemoryInfo_v2", "NOT_SUPPORTED", set(), None),
        (
            "nvmlDeviceGetTotalEnergyConsumption",
            "NOT_SUPPORTED",
            {"gpu_energy_j"},
            Reason.UNSUPPORTED,
        ),
        ("field:186", "NO_PERMISSION", {"gpu_power_w"}, Reason.FORBIDDEN),
        ("field:186", "UNAVAILABLE", {"gpu_power_w"}, Reason.FAILED),
        ("field:186", "NOT_SUPPORTED", set(), None),
        ("field:197", "NO_PERMISSION", PCIE, Reason.FORBIDDEN),
        (
            "nvmlDeviceGetClockInfo",
            "TIMEOUT",
            {"gpu_sm_clock_mhz", "gpu_memory_clock_mhz"},
            Reason.FAILED,
        ),
        (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "NO_PERMISSION",
            {"gpu_job_processes", "gpu_job_memory_bytes"},
            Reason.FORBIDDEN,
        ),
        ("nvmlDeviceGetTemperatureV", "DEPRECATED", {"gpu_temperature_c"}, Reason.FAILED),
    ],
)
def test_what_cannot_be_read_is_missing_with_its_reason(bench, function, error, names, reason):
    source = bench.open(ONE.plus(f"fail {function} * {error}"))
    for second in range(11):
        values = bench.read(source, float(second))[gpu_uuid(0)]
        missing = {name: value for name, value in values.items() if isinstance(value, Missing)}
        if set(values) == GPU_METRICS:
            assert set(missing) == names
        assert set(missing) <= names
        assert {value.reason for value in missing.values()} <= {reason}
        assert all(value.detail for value in missing.values())
    assert set(values) == GPU_METRICS


def test_what_failed_is_asked_again_and_what_is_not_offered_is_not(bench):
    source = bench.open(
        ONE.plus(
            "fail nvmlDeviceGetUtilizationRates * NOT_SUPPORTED",
            "fail nvmlDeviceGetTotalEnergyConsumption * TIMEOUT",
        )
    )
    refused = bench.count_calls("nvmlDeviceGetUtilizationRates")
    failed = bench.count_calls("nvmlDeviceGetTotalEnergyConsumption")
    for second in range(5):
        values = bench.read(source, float(second))[gpu_uuid(0)]
        assert values["gpu_busy_percent"].detail == "this GPU or its driver does not offer it"
        assert values["gpu_energy_j"].detail == "NVML says: Timeout"
    assert (len(refused), len(failed)) == (1, 5)


def with_processes(bench: Bench, *lines: str, scenario: Scenario = ONE) -> Scenario:
    listed = bench.tmp_path / "processes"
    listed.write_text("\n".join(lines))
    return scenario.plus(f"processes 0 file {listed}")


def test_an_old_driver_lists_processes_by_its_own_call(bench):
    scenario = with_processes(bench, "101 1000", scenario=Scenario.load("v100x4"))
    source = bench.open(scenario)
    readings = bench.read(source, 1, 101)
    assert readings[gpu_uuid(0)]["gpu_job_memory_bytes"] == 1000 * MIB
    assert readings[gpu_uuid(1)]["gpu_job_processes"] == 0
    source.close()  # or the stub would not read the next scenario
    neither = scenario.plus("fail nvmlDeviceGetComputeRunningProcesses_v2 * FUNCTION_NOT_FOUND")
    value = bench.read(bench.open(neither), 1, 101)[gpu_uuid(0)]["gpu_job_processes"]
    assert (value.reason, value.detail) == (Reason.UNSUPPORTED, "the driver is too old to offer it")


def test_only_the_programs_processes_count(bench):
    source = bench.open(with_processes(bench, "101 1000", "102 24", "999 5000"))
    values = bench.read(source, 1, 101, 102, 103)[gpu_uuid(0)]
    assert values["gpu_job_processes"] == 2
    assert values["gpu_job_memory_bytes"] == 1024 * MIB
    values = bench.read(source, 2, 7)[gpu_uuid(0)]
    assert (values["gpu_job_processes"], values["gpu_job_memory_bytes"]) == (0, 0)


def test_memory_that_the_driver_does_not_tell_by_process_is_missing(bench):
    source = bench.open(with_processes(bench, "101 1000", "102 -1"))
    values = bench.read(source, 1, 101, 102)[gpu_uuid(0)]
    assert values["gpu_job_processes"] == 2
    assert values["gpu_job_memory_bytes"].reason is Reason.UNSUPPORTED
    assert bench.read(source, 2, 101)[gpu_uuid(0)]["gpu_job_memory_bytes"] == 1000 * MIB


@pytest.mark.parametrize("lines", [["4711 1000"], []])
def test_in_a_container_no_match_proves_nothing(bench, lines):
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(with_processes(bench, *lines))
    values = bench.read(source, 1, 101)[gpu_uuid(0)]
    for name in ("gpu_job_processes", "gpu_job_memory_bytes"):
        assert values[name].reason is Reason.FAILED
        assert "container" in values[name].detail


def test_where_the_namespace_is_not_told_no_match_proves_nothing(bench):
    (bench.root / "proc/self/ns/pid").unlink()
    value = bench.read(bench.open(ONE), 1, 101)[gpu_uuid(0)]["gpu_job_processes"]
    assert value.reason is Reason.FAILED


def test_a_field_of_a_type_to_come_is_no_figure(bench):
    bench.monkeypatch.setattr(nvidia, "_VALUE_FIELDS", ("dVal",))
    value = bench.read(bench.open(ONE), 1)[gpu_uuid(0)]["gpu_power_w"]
    assert value.reason is Reason.FAILED


def test_in_a_container_a_match_shows_that_ids_agree(bench):
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(with_processes(bench, "101 1000"))
    assert bench.read(source, 1, 101)[gpu_uuid(0)]["gpu_job_processes"] == 1
    with_processes(bench)
    assert bench.read(source, 2, 101)[gpu_uuid(0)]["gpu_job_processes"] == 0


@pytest.mark.parametrize(
    ("scenario", "environment", "words"),
    [
        (Scenario.load("no_driver"), {}, "its driver is not loaded"),
        (Scenario.load("no_permission"), {}, "refuses this user"),
        (Scenario(("init LIB_RM_VERSION_MISMATCH",)), {}, "different versions"),
        (Scenario(("init TIMEOUT",)), {}, "does not work: Timeout"),
        (Scenario(("gpus 0",)), {}, "shows no GPU to this user"),
        (
            Scenario(("gpus 2", "fail nvmlDeviceGetHandleByIndex_v2 * NO_PERMISSION")),
            {},
            "shows no GPU to this user (not open to this user, and left out: GPU 0, 1",
        ),
        (ONE, {"CUDA_VISIBLE_DEVICES": ""}, "none of the 1 NVIDIA GPUs here is this job's"),
        (ONE, {"CUDA_VISIBLE_DEVICES": "3"}, "CUDA_VISIBLE_DEVICES is '3'"),
        (ONE, {"SLURM_JOB_ID": "1"}, "this Slurm job holds no GPU"),
        (Scenario(("fail nvmlDeviceGetCount_v2 * TIMEOUT",)), {}, "does not work: Timeout"),
    ],
)
def test_nothing_to_read_is_one_clear_error(bench, scenario, environment, words):
    with pytest.raises(DeviceError) as caught:
        bench.open(scenario, **environment)
    assert words in caught.value.found
    assert caught.value.next_step
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_a_machine_without_the_library_says_so(monkeypatch):
    def absent(name):
        raise OSError(name)

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", absent)
    with pytest.raises(DeviceError, match=r"no NVIDIA driver library \(libnvidia-ml.so.1\)"):
        NvidiaSource({})


def test_closing_twice_lets_go_once(bench):
    first = bench.open("h100x8_busy")
    second = bench.open("h100x8_busy")
    first.close()
    first.close()
    assert first.read(frozenset()) == {}
    assert bench.read(second, 1)[gpu_uuid(0)]["gpu_busy_percent"] == 92


def test_the_energy_of_a_superchip_is_told_to_be_the_modules(bench):
    source = bench.open(ONE.plus("name 0 NVIDIA GH200 480GB"))
    assert source.notes == (
        "the energy counter of a GH200 is the whole module's, its CPU included",
    )


PROGRAM = """
import json, os, time
from teho.devices.nvidia import NvidiaSource

source = NvidiaSource(os.environ)
source.read(frozenset())
before_s = time.monotonic()
readings = source.read(frozenset({os.getpid()}))
after_s = time.monotonic()
energy_j = {id_: values["gpu_energy_j"] for id_, values in readings.items()}
print(json.dumps([before_s, after_s, energy_j]))
"""


def test_another_process_finds_the_library_and_agrees_on_the_time(stub_folder, tmp_path):
    scenario = Scenario.load("h100x8_busy")
    path = scenario.write(tmp_path / "scenario.txt")
    epoch_s = time.monotonic() - 100
    variables = nvml_stub.environment(stub_folder, path, epoch_s)
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
