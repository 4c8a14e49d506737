from __future__ import annotations

import pynvml
import pytest
from nvml_bench import JOB_BUSY, MIB, ONE, Bench
from nvml_stub import Scenario, gpu_uuid

from teho.devices.nvidia.source import NvidiaSource
from teho.model.device import GpuDetails, GpuProcess
from teho.model.missing import Reason


def details(source: NvidiaSource) -> GpuDetails:
    return source.details()[gpu_uuid(0)]


def test_an_old_driver_lists_processes_by_its_own_call(bench: Bench):
    scenario = bench.with_processes("101 1000", scenario=Scenario.load("v100x4"))
    source = bench.open(scenario)
    readings = bench.read(source, 1, 101)
    assert readings[gpu_uuid(0)]["gpu_job_memory_bytes"] == 1000 * MIB
    assert readings[gpu_uuid(1)]["gpu_job_processes"] == 0
    source.close()  # or the stub would not read the next scenario
    neither = scenario.plus("fail nvmlDeviceGetComputeRunningProcesses_v2 * FUNCTION_NOT_FOUND")
    value = bench.read(bench.open(neither), 1, 101)[gpu_uuid(0)]["gpu_job_processes"]
    assert (value.reason, value.detail) == (
        Reason.UNSUPPORTED,
        "the driver is too old to report this metric",
    )


def test_only_the_programs_processes_count(bench: Bench):
    source = bench.open(bench.with_processes("101 1000", "102 24", "999 5000"))
    values = bench.read(source, 1, 101, 102, 103)[gpu_uuid(0)]
    assert values["gpu_job_processes"] == 2
    assert values["gpu_job_memory_bytes"] == 1024 * MIB
    assert details(source).processes == {
        101: GpuProcess(1000 * MIB, ("compute",)), 102: GpuProcess(24 * MIB, ("compute",))
    }  # fmt: skip
    values = bench.read(source, 2, 7)[gpu_uuid(0)]
    assert (values["gpu_job_processes"], values["gpu_job_memory_bytes"]) == (0, 0)


def test_memory_that_is_not_reported_for_each_process_is_missing(bench: Bench):
    source = bench.open(bench.with_processes("101 1000", "102 -1"))
    values = bench.read(source, 1, 101, 102)[gpu_uuid(0)]
    assert values["gpu_job_processes"] == 2
    assert values["gpu_job_memory_bytes"].reason is Reason.UNSUPPORTED
    assert details(source).processes == {
        101: GpuProcess(1000 * MIB, ("compute",)), 102: GpuProcess(None, ("compute",))
    }  # fmt: skip
    assert bench.read(source, 2, 101)[gpu_uuid(0)]["gpu_job_memory_bytes"] == 1000 * MIB


@pytest.mark.parametrize("lines", [["4711 1000"], []])
def test_in_a_container_no_process_that_matches_proves_nothing(bench: Bench, lines):
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(bench.with_processes(*lines))
    values = bench.read(source, 1, 101)[gpu_uuid(0)]
    for name in ("gpu_job_processes", "gpu_job_memory_bytes"):
        assert values[name].reason is Reason.FAILED
        assert "container" in values[name].detail


def test_without_a_known_namespace_no_match_proves_nothing(bench: Bench):
    (bench.root / "proc/self/ns/pid").unlink()
    value = bench.read(bench.open(ONE), 1, 101)[gpu_uuid(0)]["gpu_job_processes"]
    assert value.reason is Reason.FAILED


def test_in_a_container_a_process_that_matches_shows_that_ids_agree(bench: Bench):
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(bench.with_processes("101 1000"))
    assert bench.read(source, 1, 101)[gpu_uuid(0)]["gpu_job_processes"] == 1
    bench.with_processes()
    assert bench.read(source, 2, 101)[gpu_uuid(0)]["gpu_job_processes"] == 0


WORKS_THEN_IDLES = Scenario(("gpus 1", "0 0 80 1000 300", "10 0 0 1000 90", "15 0 40 1000 200"))


def test_only_the_programs_share_counts(bench: Bench):
    source = bench.open(bench.with_processes("101", "102", "999", "998"))
    bench.read(source, 0, 101, 102)
    assert bench.read(source, 2, 101, 102)[gpu_uuid(0)][JOB_BUSY] == 24, "12 of 50 each"
    assert bench.read(source, 4, 999)[gpu_uuid(0)][JOB_BUSY] == 12
    assert bench.read(source, 6, 7)[gpu_uuid(0)][JOB_BUSY] == 0


def test_a_process_that_went_idle_is_idle(bench: Bench):
    """Asked without the time of the last sample, the driver tells of what it did seconds ago."""
    source = bench.open(bench.with_processes("101", scenario=WORKS_THEN_IDLES))
    told = {
        second: bench.read(source, float(second), 101)[gpu_uuid(0)].get(JOB_BUSY)
        for second in range(4, 18)
    }
    assert told[4] is None, "what the driver saw before the recording is not the recording's"
    assert {told[second] for second in range(5, 10)} == {80}
    assert {told[second] for second in range(11, 15)} == {0}
    assert told[17] == 40
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetProcessUtilization(pynvml.nvmlDeviceGetHandleByIndex(0), 17_000_000)


def test_no_sample_yet_is_not_idle(bench: Bench):
    """At 10 Hz the driver has no new sample at most readings: those are left out, not 0."""
    source = bench.open(bench.with_processes("101", scenario=WORKS_THEN_IDLES))
    told = [
        bench.read(source, tenth / 10, 101)[gpu_uuid(0)].get(JOB_BUSY) for tenth in range(1, 90)
    ]
    assert set(told) == {80, None}
    assert told.count(80) == 17, "two a second"


def test_shares_side_by_side_are_at_most_all(bench: Bench, monkeypatch):
    source = bench.open(bench.with_processes("101", "102"))
    bench.read(source, 0, 101, 102)
    samples = [
        pynvml.c_nvmlProcessUtilizationSample_t(pid=pid, timeStamp=1_000_000, smUtil=70)
        for pid in (101, 102)
    ]
    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", lambda *_: samples)
    assert bench.read(source, 1, 101, 102)[gpu_uuid(0)][JOB_BUSY] == 100


def test_a_share_that_is_not_available_is_no_share(bench: Bench, monkeypatch):
    source = bench.open(bench.with_processes("101"))
    bench.read(source, 0, 101)
    sample = pynvml.c_nvmlProcessUtilizationSample_t(pid=101, timeStamp=1, smUtil=2**32 - 1)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", lambda *_: [sample])
    assert bench.read(source, 1, 101)[gpu_uuid(0)][JOB_BUSY].reason is Reason.FAILED


def test_an_empty_list_is_no_process_and_not_an_error(bench: Bench, monkeypatch):
    """The binding raises NVML_SUCCESS where the driver answers with no sample."""
    source = bench.open(ONE)
    bench.read(source, 0, 101)

    def empty(*_arguments):
        raise pynvml.NVMLError(pynvml.NVML_SUCCESS)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", empty)
    assert bench.read(source, 1, 101)[gpu_uuid(0)][JOB_BUSY] == 0


@pytest.mark.parametrize("lines", [["4711"], []])
def test_in_a_container_no_match_proves_nothing(bench: Bench, lines):
    """The driver's ids are the host's: a job that fills its GPU would be at 0 %."""
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(bench.with_processes(*lines))
    bench.read(source, 0, 101)
    value = bench.read(source, 2, 101)[gpu_uuid(0)][JOB_BUSY]
    assert value.reason is Reason.FAILED
    assert "container" in value.detail


def test_in_a_container_a_match_shows_that_ids_agree(bench: Bench):
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(bench.with_processes("101"))
    bench.read(source, 0, 101)
    assert bench.read(source, 2, 101)[gpu_uuid(0)][JOB_BUSY] == 50
    bench.with_processes()
    assert bench.read(source, 4, 101)[gpu_uuid(0)][JOB_BUSY] == 0


def test_utilisation_that_is_refused_is_missing(bench: Bench):
    source = bench.open(ONE.plus("fail nvmlDeviceGetProcessUtilization * NO_PERMISSION"))
    assert bench.read(source, 0, 101)[gpu_uuid(0)][JOB_BUSY].reason is Reason.FORBIDDEN


def test_accounting_mode_is_noted_if_it_is_on(bench: Bench):
    scenario = Scenario(("gpus 3", "0 * 50 1000 300", "accounting 0 on", "accounting 2 on"))
    (note,) = bench.open(scenario).notes
    assert "(accounting mode) on GPU 0, 2. Read them with: `nvidia-smi" in note
    refused = scenario.plus("fail nvmlDeviceGetAccountingMode * NOT_SUPPORTED")
    bench.sources[0].close()
    assert bench.open(refused).notes == ()
