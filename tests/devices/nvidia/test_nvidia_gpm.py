from __future__ import annotations

import ctypes
import struct

import pynvml
import pytest
from nvml_bench import ACTIVITY, GPU_METRICS, MIB, NVLINK, ONE, PCIE, Bench
from nvml_stub import Scenario, gpu_uuid, mig_uuid

from teho.devices.nvidia import gpm as nvidia_gpm
from teho.model.missing import Missing, Reason

SM, TENSOR = "gpu_sm_active_percent", "gpu_tensor_percent"


@pytest.mark.parametrize("step_s", [0.2, 1.0, 7.3])
def test_figures_are_the_traces_means_to_a_thousandth(bench: Bench, step_s):
    scenario = Scenario.load("h200x4")
    source = bench.open(scenario)
    bench.read(source, 0)
    numbers = {SM: 2, "gpu_sm_occupancy_percent": 3, TENSOR: 5, "gpu_dram_percent": 10}
    for turn in range(1, 40):
        before_s, now_s = (turn - 1) * step_s, turn * step_s
        readings = bench.read(source, now_s)
        for gpu in range(4):
            for name, metric in numbers.items():
                truth = scenario.gpm_mean(gpu, metric, before_s, now_s)
                assert readings[gpu_uuid(gpu)][name] == pytest.approx(truth, rel=1e-3, abs=1e-9)


def test_busy_is_not_capacity(bench: Bench):
    """Tiny kernels: who takes busy % for what is in use reports a GPU that is full."""
    source = bench.open("h200x4")
    bench.read(source, 0)
    values = bench.read(source, 1)[gpu_uuid(3)]
    assert values["gpu_busy_percent"] == 97
    assert values[SM] == pytest.approx(11.5)


def test_samples_too_close_together_give_no_figure_and_lose_none(bench: Bench):
    """The driver answers zeros there: taken at their word, they would say that nothing ran."""
    scenario = Scenario.load("h100x8_busy")
    source = bench.open(scenario)
    bench.read(source, 39)
    for now_s in (39.05, 39.09):
        assert not (ACTIVITY | NVLINK | PCIE) & set(bench.read(source, now_s)[gpu_uuid(0)])
    # The older sample was kept: the mean reaches from 39 s to 41 s, over the load's change.
    value = bench.read(source, 41)[gpu_uuid(0)][SM]
    assert value == pytest.approx(scenario.gpm_mean(0, 2, 39, 41), rel=1e-3)


def test_at_ten_readings_a_second_each_has_a_figure(bench: Bench):
    """They are now a little more, now a little less than 0.1 s apart."""
    source = bench.open("h200x4")
    bench.read(source, 0)
    readings = [bench.read(source, 0.1 * turn + 0.004 * (turn % 3)) for turn in range(1, 40)]
    told = [SM in values[gpu_uuid(1)] for values in readings]
    assert all(told[1:]), "the first one may be too close to the beginning"


def test_one_sample_and_one_call_a_gpu_for_all_metrics(bench: Bench):
    source = bench.open("h100x8_busy")
    bench.read(source, 0)
    sampled = bench.count_calls("nvmlGpmSampleGet")
    asked = bench.count_calls("nvmlGpmMetricsGet")
    fields = bench.count_calls("nvmlDeviceGetFieldValues")
    values = bench.read(source, 1)[gpu_uuid(7)]
    assert set(values) >= ACTIVITY | NVLINK | PCIE
    assert (len(sampled), len(asked)) == (8, 8)
    assert len(fields) <= 8 + 1, "power, and the NVLink errors of one: PCIe came with the rest"


def test_only_the_metric_that_fails_is_missing(bench: Bench):
    """The call as a whole succeeds: what looks at that alone records 0 or NaN."""
    source = bench.open(
        ONE.plus("fail gpm:5 0 NOT_SUPPORTED", "fail gpm:10 0 UNAVAILABLE", "fail gpm:2 0 TIMEOUT")
    )
    bench.read(source, 0)
    values = bench.read(source, 1)[gpu_uuid(0)]
    assert values[TENSOR] == Missing(
        Reason.UNSUPPORTED, "this GPU or its driver does not report this metric"
    )
    assert values["gpu_dram_percent"] == Missing(
        Reason.FAILED, "the driver reports 'not a number' instead of a value"
    )
    assert values[SM].reason is Reason.FAILED
    assert values["gpu_fp32_percent"] == pytest.approx(5)


@pytest.mark.parametrize(
    ("refusal", "reason", "words"),
    [
        ("nvmlGpmQueryDeviceSupport * FUNCTION_NOT_FOUND", Reason.UNSUPPORTED, "driver is too old"),
        ("nvmlGpmQueryDeviceSupport * NOT_SUPPORTED", Reason.UNSUPPORTED, "Hopper and newer GPUs"),
        ("nvmlGpmQueryDeviceSupport * UNKNOWN", Reason.FAILED, "NVML says"),
        (
            "nvmlGpmSampleGet * NO_PERMISSION",
            Reason.FORBIDDEN,
            "does not report this metric to this user",
        ),
        ("nvmlGpmSampleAlloc * INSUFFICIENT_SIZE", Reason.FAILED, "NVML says"),
    ],
)
def test_what_is_refused_at_the_start_says_why_and_what_would_help(
    bench: Bench, refusal, reason, words
):
    source = bench.open(ONE.plus(f"fail {refusal}"))
    bench.read(source, 0)
    values = bench.read(source, 1)[gpu_uuid(0)]
    for name in ACTIVITY | NVLINK:
        assert values[name].reason is reason
        assert words in values[name].detail
        assert values[name].detail.endswith(", and DCGM is not available: no host engine here")
    # Traffic then comes from the driver's byte counters.
    assert values["gpu_pcie_receive_bytes_per_s"] == pytest.approx(500e6)
    assert bench.library.stub_live_samples() == 0


@pytest.mark.parametrize(("name", "architecture"), [("a100_mig", "8.0"), ("v100x4", "7.0")])
def test_a_gpu_before_hopper_is_known_by_its_architecture(bench: Bench, name, architecture):
    """An old driver is not to blame: no newer one would tell more."""
    source = bench.open(name)
    assert {device.architecture for device in source.devices} == {architecture}
    value = bench.read(source, 1)[gpu_uuid(1)][SM]
    assert value.reason is Reason.UNSUPPORTED
    assert "Hopper and newer GPUs" in value.detail


def test_a_gpu_without_a_reported_architecture_is_asked_for_gpm(bench: Bench):
    source = bench.open(ONE.plus("fail nvmlDeviceGetCudaComputeCapability * UNKNOWN"))
    assert source.devices[0].architecture == ""
    bench.read(source, 0)
    assert bench.read(source, 1)[gpu_uuid(0)][SM] == pytest.approx(40)


def test_a_driver_that_says_no_to_such_a_gpu_is_believed(bench: Bench):
    hidden = "fail nvmlDeviceGetCudaComputeCapability * UNKNOWN"
    source = bench.open(Scenario.load("a100_mig").plus(hidden))
    assert "Hopper and newer GPUs" in bench.read(source, 1)[gpu_uuid(1)][SM].detail


def test_permission_that_goes_and_comes_back(bench: Bench, monkeypatch):
    """As seen in a container: the first samples work, then error 4 (NVIDIA/DCGM#214)."""
    scenario = Scenario.load("h100x8_busy")
    source = bench.open(scenario, CUDA_VISIBLE_DEVICES="0")
    bench.read(source, 0)
    real = pynvml.nvmlGpmSampleGet

    def refused(*_arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)

    monkeypatch.setattr(pynvml, "nvmlGpmSampleGet", refused)
    values = bench.read(source, 1)[gpu_uuid(0)]
    assert {values[name].reason for name in ACTIVITY | NVLINK | PCIE} == {Reason.FORBIDDEN}
    monkeypatch.setattr(pynvml, "nvmlGpmSampleGet", real)
    value = bench.read(source, 45)[gpu_uuid(0)][SM]
    assert value == pytest.approx(scenario.gpm_mean(0, 2, 0, 45), rel=1e-3)


def test_samples_that_cost_much_are_taken_rarely_and_still_cover_all_time(bench: Bench):
    bench.count_calls("nvmlGpmSampleGet", cost_s=0.0004)
    scenario = Scenario.load("h100x8_busy")
    source = bench.open(scenario)
    told = {
        (second, id_): values[SM]
        for second in range(52)
        for id_, values in bench.read(source, float(second)).items()
        if SM in values
    }
    # A run begins with a sample of every GPU; the fourth one's next ones are at 3 s, 13 s, ...
    assert [second for second, id_ in told if id_ == gpu_uuid(3)] == list(range(3, 52))
    for second in range(43, 52):  # one figure stands until there is another
        mean = scenario.gpm_mean(3, 2, 33, 43)
        assert told[second, gpu_uuid(3)] == pytest.approx(mean, rel=1e-3)
    last = bench.read(source, 52, is_last=True)[gpu_uuid(3)][SM]
    assert last == pytest.approx(scenario.gpm_mean(3, 2, 43, 52), rel=1e-3)


def test_instances_have_figures_of_their_own(bench: Bench):
    """The whole GPU's figure, shown for each instance, would be wrong for all but the last."""
    scenario = Scenario.load("h100_mig")
    source = bench.open(scenario)
    bench.read(source, 0)
    readings = bench.read(source, 2)
    whole = scenario.gpm_mean(0, 2, 0, 2)
    for instance in range(3):
        values = readings[mig_uuid(0, instance)]
        assert values[SM] == pytest.approx(whole * (instance + 1) / 3, rel=1e-3)
        assert set(values) == GPU_METRICS
        for name in PCIE | NVLINK | {"gpu_energy_j", "gpu_ecc_corrected", "gpu_nvlink_errors"}:
            assert "whole GPU" in values[name].detail
        assert values["gpu_job_busy_percent"].reason is Reason.UNSUPPORTED


def test_an_instance_without_a_reported_number_has_no_figures(bench: Bench):
    refuse = "fail nvmlDeviceGetGpuInstanceId * UNKNOWN"
    source = bench.open(Scenario.load("h100_mig").plus(refuse))
    bench.read(source, 0)
    value = bench.read(source, 1)[mig_uuid(0, 2)][SM]
    assert isinstance(value, Missing)


def test_a_gpu_without_nvlink_is_not_asked_for_it(bench: Bench):
    source = bench.open(ONE.plus("name 0 NVIDIA H100 PCIe"))
    bench.read(source, 0)
    values = bench.read(source, 1)[gpu_uuid(0)]
    for name in NVLINK | {"gpu_nvlink_errors"}:
        assert values[name] == Missing(Reason.ABSENT, "this GPU has no NVLink")
    assert values[SM] == pytest.approx(40)


def test_dcgm_fills_what_the_driver_does_not_report(bench: Bench):
    bench.dcgm = {
        gpu_uuid(0): {SM: 61.5, "gpu_nvlink_send_bytes_per_s": 7e9, "gpu_busy_percent": 1.0},
        gpu_uuid(1): {SM: 0.0, "gpu_pcie_send_bytes_per_s": 5.0},
    }
    source = bench.open("v100x4")
    assert source.notes == ("from DCGM",)
    bench.read(source, 0)
    readings = bench.read(source, 10)
    assert readings[gpu_uuid(0)][SM] == 61.5
    assert readings[gpu_uuid(0)]["gpu_nvlink_send_bytes_per_s"] == 7e9
    assert readings[gpu_uuid(1)][SM] == 0
    # What NVML tells, it tells alone: two ways for one metric would be two truths.
    assert readings[gpu_uuid(0)]["gpu_busy_percent"] == 78
    assert readings[gpu_uuid(1)].get("gpu_pcie_send_bytes_per_s") != 5.0
    # A figure that is still to come is left out; a GPU that DCGM does not know is told.
    assert TENSOR not in readings[gpu_uuid(0)]
    for name in ACTIVITY | NVLINK:
        assert readings[gpu_uuid(2)][name].reason is Reason.FAILED
    bench.dcgm[gpu_uuid(2)] = {SM: 3.0}
    assert bench.read(source, 11)[gpu_uuid(2)][SM] == 3


def test_dcgm_is_asked_only_for_such_gpus(bench: Bench):
    bench.dcgm = {mig_uuid(0, 1): {SM: 12.0, "gpu_nvlink_send_bytes_per_s": 1.0}}
    source = bench.open("a100_mig")
    devices, numbers = bench.dcgm_asked
    assert [device.id for device in devices] == [device.id for device in source.devices]
    assert numbers == {mig_uuid(0, 0): 7, mig_uuid(0, 1): 8}
    values = bench.read(source, 1)[mig_uuid(0, 1)]
    assert values[SM] == 12
    assert "whole GPU" in values["gpu_nvlink_send_bytes_per_s"].detail


def test_dcgm_is_not_asked_if_the_driver_reports_all(bench: Bench):
    bench.dcgm = {}
    bench.open("h200x4")
    assert bench.dcgm_asked is None


def test_dcgm_does_not_bring_a_lost_gpu_back(bench: Bench):
    bench.dcgm = {gpu_uuid(n): {SM: 50.0} for n in range(4)}
    source = bench.open(Scenario.load("v100x4").plus("lost 2 5"))
    assert bench.read(source, 4)[gpu_uuid(2)][SM] == 50
    assert "lost" in bench.read(source, 6)[gpu_uuid(2)][SM].detail


def test_all_buffers_are_given_back(bench: Bench):
    source = bench.open("h100x8_busy")
    assert bench.library.stub_live_samples() == 16
    source.close()
    source.close()
    assert bench.library.stub_live_samples() == 0


def test_traffic_is_in_bytes_and_its_directions_are_the_gpus(bench: Bench):
    """MiB/s taken for MB/s, or bytes, would be 5 % or a million times off."""
    source = bench.open(ONE)
    bench.read(source, 0)
    values = bench.read(source, 1)[gpu_uuid(0)]
    assert values["gpu_pcie_receive_bytes_per_s"] == pytest.approx(50 * 10e6)
    assert values["gpu_pcie_send_bytes_per_s"] == pytest.approx(50 * 2e6)
    assert values["gpu_nvlink_receive_bytes_per_s"] == pytest.approx(50 * 40 * MIB)
    assert values["gpu_nvlink_send_bytes_per_s"] == pytest.approx(50 * 30 * MIB)


def test_the_layout_of_an_answer_is_the_bindings():
    size = ctypes.sizeof(pynvml.c_nvmlGpmMetric_t)
    assert struct.calcsize(nvidia_gpm._ANSWER) == size
    one = pynvml.c_nvmlGpmMetric_t(metricId=7, nvmlReturn=3, value=2.5)
    assert struct.unpack_from(nvidia_gpm._ANSWER, one) == (3, 2.5)
