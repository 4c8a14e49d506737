from __future__ import annotations

import pynvml
import pytest
from nvml_bench import ONE, Bench
from nvml_stub import Scenario, gpu_uuid, mig_uuid

from teho.model.missing import Missing, Reason

XIDS, NVLINK_ERRORS = "gpu_xid_errors", "gpu_nvlink_errors"


def test_xids_are_counted_and_reported_once(bench: Bench):
    source = bench.open("h100x4_errors")
    assert bench.read(source, 5)[gpu_uuid(0)][XIDS] == 0
    assert source.alerts() == []
    readings = bench.read(source, 20)
    assert [readings[gpu_uuid(n)][XIDS] for n in range(4)] == [1, 1, 0, 0]
    assert source.alerts() == [
        "GPU 0: Xid 31 (a page fault: a kernel used an address that it may not use)",
        "GPU 1: Xid 48 (a memory error that could not be corrected)",
    ]
    assert bench.read(source, 21)[gpu_uuid(0)][XIDS] == 1
    assert source.alerts() == []
    source.close()
    assert source.alerts() == []


def test_a_gpu_that_falls_off_its_bus_is_still_named(bench: Bench):
    """Who asks the lost GPU for its UUID, to know whom the event is about, never learns it."""
    source = bench.open("h100x4_errors")
    bench.read(source, 29)
    source.alerts()
    values = bench.read(source, 31)[gpu_uuid(3)]
    assert values[XIDS] == 1
    assert source.alerts() == ["GPU 3: Xid 79 (the GPU has fallen off the bus)"]
    assert "lost" in values["gpu_power_w"].detail


def test_reading_never_waits_for_an_event(bench: Bench, monkeypatch):
    waits_ms = []
    real = pynvml.nvmlEventSetWait_v2

    def waiting(events, timeout_ms):
        waits_ms.append(timeout_ms)
        return real(events, timeout_ms)

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", waiting)
    source = bench.open("h100x4_errors")
    bench.read(source, 20)
    assert waits_ms == [0, 0, 0], "two events, and the word that there are no more"


def test_what_was_before_the_recording_is_not_its_own(bench: Bench):
    bench.at(10)
    source = bench.open("h100x4_errors")
    assert bench.read(source, 13)[gpu_uuid(0)][XIDS] == 0
    assert source.alerts() == []


def test_a_number_without_a_known_meaning_is_shown_without_text(bench: Bench):
    source = bench.open(ONE.plus("error 1 0 xid 8191"))
    bench.read(source, 2)
    assert source.alerts() == ["GPU 0: Xid 8191"]


def test_a_flood_of_events_is_taken_in_parts(bench: Bench, monkeypatch):
    source = bench.open(ONE)
    gpu, kind = pynvml.nvmlDeviceGetHandleByIndex(0), pynvml.nvmlEventTypeXidCriticalError
    event = pynvml.c_nvmlEventData_t(device=gpu, eventType=kind, eventData=31)
    event.gpuInstanceId = 2**32 - 1
    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", lambda *_: event)
    assert bench.read(source, 1)[gpu_uuid(0)][XIDS] == 1000
    assert len(source.alerts()) == 1000


def test_events_of_other_kinds_are_no_xids(bench: Bench, monkeypatch):
    source = bench.open(ONE)
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    events = [pynvml.c_nvmlEventData_t(device=gpu, eventType=pynvml.nvmlEventTypeClock)]
    events[0].gpuInstanceId = 2**32 - 1

    def wait(*_arguments):
        if not events:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        return events.pop()

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", wait)
    assert bench.read(source, 1)[gpu_uuid(0)][XIDS] == 0


@pytest.mark.parametrize(
    ("refusal", "reasons"),
    [
        ("nvmlEventSetCreate * UNKNOWN", [Reason.FAILED] * 2),
        ("nvmlDeviceRegisterEvents 1 NOT_SUPPORTED", [None, Reason.UNSUPPORTED]),
        ("nvmlDeviceRegisterEvents * NO_PERMISSION", [Reason.FORBIDDEN] * 2),
        ("nvmlEventSetWait_v2 * UNKNOWN", [Reason.FAILED] * 2),
    ],
)
def test_unreported_errors_are_missing_and_not_zero(bench: Bench, refusal, reasons):
    source = bench.open(Scenario(("gpus 2", "0 * 50 1000 300", f"fail {refusal}")))
    values = [bench.read(source, 1)[gpu_uuid(n)][XIDS] for n in range(2)]
    assert [v.reason if isinstance(v, Missing) else None for v in values] == reasons
    assert source.alerts() == []
    source.close()


def test_the_count_continues_after_a_failure(bench: Bench, monkeypatch):
    source = bench.open("h100x4_errors")
    real = pynvml.nvmlEventSetWait_v2

    def lost(*_arguments):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", lost)
    assert isinstance(bench.read(source, 7)[gpu_uuid(0)][XIDS], Missing)
    monkeypatch.setattr(pynvml, "nvmlEventSetWait_v2", real)
    assert bench.read(source, 8)[gpu_uuid(0)][XIDS] == 1


def test_an_error_on_an_instance_of_another_job_is_not_ours(bench: Bench):
    scenario = Scenario.load("h100_mig").plus(
        "error 1 0 xid 31 0", "error 2 0 xid 43 1", "error 3 0 xid 79"
    )
    source = bench.open(scenario, CUDA_VISIBLE_DEVICES=f"{mig_uuid(0, 1)},{mig_uuid(0, 2)}")
    readings = bench.read(source, 5)
    assert [values[XIDS] for values in readings.values()] == [2, 1]
    assert [alert[:36] for alert in source.alerts()] == [
        "MIG instance 1 of GPU 0: Xid 43 (the",
        "MIG instance 1 of GPU 0: Xid 79 (the",
        "MIG instance 2 of GPU 0: Xid 79 (the",
    ]


ECC = ("gpu_ecc_corrected", "gpu_ecc_uncorrected")


def test_errors_of_memory_are_counted_by_kind(bench: Bench):
    source = bench.open("h100x4_errors")
    told = [
        tuple(bench.read(source, second, is_last=True)[gpu_uuid(1)][name] for name in ECC)
        for second in range(16)
    ]
    assert told == [(0, 0)] * 4 + [(2, 0)] * 10 + [(2, 1)] * 2


def test_a_gpu_with_ecc_off_has_no_count_of_errors(bench: Bench):
    """Off is not free of errors."""
    source = bench.open(ONE.plus("fail nvmlDeviceGetTotalEccErrors * NOT_SUPPORTED"))
    values = bench.read(source, 0)[gpu_uuid(0)]
    assert [values[name].reason for name in ECC] == [Reason.UNSUPPORTED] * 2


def test_errors_of_all_links_count_on_hopper(bench: Bench):
    """They are the last link's: who reads the field without its scope looks at the first."""
    source = bench.open("h100x4_errors")
    told = [
        values[gpu_uuid(1)][NVLINK_ERRORS]
        for values in (bench.read(source, float(second)) for second in range(32))
        if NVLINK_ERRORS in values[gpu_uuid(1)]
    ]
    assert told == [0, 0, 5], "at 0, 1 and 31 s"


def test_errors_of_all_links_together_before_hopper(bench: Bench):
    scenario = Scenario.load("v100x4").plus("error 3 2 nvlink 7", "fail field:38 * NOT_SUPPORTED")
    source = bench.open(scenario)
    assert bench.read(source, 0)[gpu_uuid(2)][NVLINK_ERRORS] == 0
    assert bench.read(source, 4, is_last=True)[gpu_uuid(2)][NVLINK_ERRORS] == 7


@pytest.mark.parametrize(
    ("refusals", "reason"),
    [
        ([f"field:{field} * NOT_SUPPORTED" for field in (38, 45, 52, 59)], Reason.UNSUPPORTED),
        (["field:52 * NO_PERMISSION"], Reason.FORBIDDEN),
        (["field:91 * UNKNOWN", "field:59 * UNKNOWN"], Reason.FAILED),
    ],
)
def test_links_without_reported_errors_are_missing_and_not_sound(bench: Bench, refusals, reason):
    source = bench.open(Scenario.load("v100x4").plus(*(f"fail {refusal}" for refusal in refusals)))
    assert bench.read(source, 0)[gpu_uuid(0)][NVLINK_ERRORS].reason is reason


def test_error_counters_are_read_rarely_but_of_all_gpus_at_both_ends(bench: Bench):
    """One first read later would take what it shows then for its beginning."""
    source = bench.open("h100x8_busy")
    turns = {
        (second, id_)
        for second in range(34)
        for id_, values in bench.read(source, second, is_last=second == 33).items()
        if ECC[0] in values and NVLINK_ERRORS in values
    }
    for gpu in range(8):
        expected = sorted({0, gpu, gpu + 30, 33} & set(range(34)))
        assert sorted(second for second, id_ in turns if id_ == gpu_uuid(gpu)) == expected
