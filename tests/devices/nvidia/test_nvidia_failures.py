"""Figures and devices that the driver refuses, and errors of the driver."""

from __future__ import annotations

import ctypes

import pynvml
import pytest
from nvml_bench import GPU_METRICS, ONE
from nvml_stub import Scenario, gpu_uuid, mig_uuid

from teho.devices.nvidia import signals as nvidia_signals
from teho.devices.nvidia.source import NvidiaSource
from teho.errors import DeviceError
from teho.model.missing import Missing, Reason


def test_an_argument_that_an_instance_does_not_take_is_not_offered(bench):
    refuse = "fail nvmlDeviceGetClockInfo 0 INVALID_ARGUMENT"
    source = bench.open(Scenario.load("a100_mig").plus(refuse))
    clock = bench.read(source, 1)[mig_uuid(0, 0)]["gpu_sm_clock_mhz"]
    assert clock.reason is Reason.UNSUPPORTED


def test_a_lost_gpu_fails_and_the_others_continue(bench):
    source = bench.open("h100x4_one_lost")
    bench.read(source, 0)
    assert bench.read(source, 4.9)[gpu_uuid(2)]["gpu_power_w"] == 640
    asked = bench.count_calls("nvmlDeviceGetUtilizationRates")
    for now_s in (5.0, 6.0, 700.0):
        readings = bench.read(source, now_s)
        assert set(readings[gpu_uuid(2)]) == GPU_METRICS
        for name, value in readings[gpu_uuid(2)].items():
            if name == "gpu_xid_errors":
                continue  # the driver would tell of the loss itself by one
            assert isinstance(value, Missing)
            assert value.reason is Reason.FAILED
            assert "lost" in value.detail
        for gpu in (0, 1, 3):
            assert readings[gpu_uuid(gpu)]["gpu_energy_j"] == pytest.approx(640 * now_s)
    assert len(asked) == 3 * 3 + 1, "a lost GPU is not asked again"


def test_a_gpu_of_another_job_is_left_out_with_a_note(bench):
    source = bench.open("h100x4_two_forbidden")
    assert [device.index for device in source.devices] == [1, 3]
    assert source.notes == ("Teho does not record GPUs 0, 2, because this user has no permission",)
    # CUDA counts what it can open.
    other = bench.open("h100x4_two_forbidden", CUDA_VISIBLE_DEVICES="1")
    assert [device.id for device in other.devices] == [gpu_uuid(3)]


def test_a_gpu_that_does_not_open_is_reported_in_the_drivers_words(bench):
    refuse = "fail nvmlDeviceGetHandleByIndex_v2 1 GPU_IS_LOST"
    source = bench.open(Scenario.load("h100x4_one_lost").plus(refuse))
    assert len(source.devices) == 3
    assert source.notes == ("GPU 1 could not be opened: GPU is lost",)


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
        ("gpm:20", "NO_PERMISSION", {"gpu_pcie_send_bytes_per_s"}, Reason.FORBIDDEN),
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
        ("nvmlDeviceGetTemperature", "DEPRECATED", {"gpu_temperature_c"}, Reason.FAILED),
    ],
)
def test_what_cannot_be_read_is_missing_with_its_reason(bench, function, error, names, reason):
    source = bench.open(ONE.plus(f"fail {function} * {error}"))
    for second in range(11):
        values = bench.read(source, float(second), is_last=second == 10)[gpu_uuid(0)]
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
        assert (
            values["gpu_busy_percent"].detail
            == "this GPU or its driver does not report this metric"
        )
        assert values["gpu_energy_j"].detail == "NVML says: Timeout"
    assert (len(refused), len(failed)) == (1, 5)


def test_a_field_of_a_type_to_come_is_no_figure(bench):
    bench.monkeypatch.setattr(nvidia_signals, "_VALUES", nvidia_signals._VALUES[:1])
    value = bench.read(bench.open(ONE), 1)[gpu_uuid(0)]["gpu_power_w"]
    assert value.reason is Reason.FAILED


@pytest.mark.parametrize("kind", range(7))
def test_the_layout_of_a_field_is_the_bindings(kind):
    member = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")[kind]
    field = pynvml.c_nvmlFieldValue_t(fieldId=1, valueType=kind, nvmlReturn=6)
    setattr(field.value, member, 1234)
    kind_read, code, value = nvidia_signals._FIELD.unpack_from(field)
    assert (kind_read, code) == (kind, 6)
    assert nvidia_signals._VALUES[kind].unpack_from(value) == (1234,)
    assert nvidia_signals._FIELD.size == ctypes.sizeof(field)


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
            "shows no GPU to this user (Teho does not record GPUs 0, 1, because this user",
        ),
        (ONE, {"CUDA_VISIBLE_DEVICES": ""}, "none of the 1 NVIDIA GPUs here belongs to this job"),
        (ONE, {"CUDA_VISIBLE_DEVICES": "3"}, "CUDA_VISIBLE_DEVICES is '3'"),
        (ONE, {"SLURM_JOB_ID": "1"}, "this Slurm job has no GPU"),
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
