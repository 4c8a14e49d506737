"""Drivers, modes, P-states and types of processes, also of drivers that do not report them."""

from __future__ import annotations

import pytest
from nvml_bench import MIB, ONE, Bench
from nvml_stub import Scenario, gpu_uuid, mig_uuid

from teho.devices.nvidia.source import NvidiaSource
from teho.model.device import GpuDetails, GpuProcess
from teho.model.missing import Missing, Reason

TOO_OLD = Missing(Reason.UNSUPPORTED, "the driver is too old to report this metric")


def details(source: NvidiaSource, gpu: int = 0) -> GpuDetails:
    return source.details()[gpu_uuid(gpu)]


def reason_of(value: object) -> Reason:
    assert isinstance(value, Missing), value
    assert value.detail
    return value.reason


def test_a_gpu_has_its_driver_and_its_compute_mode(bench: Bench) -> None:
    scenario = Scenario(
        ("gpus 5", "0 * 50 1000 300", "driver 595.71.05", "cuda 13010",
         *(f"compute_mode {gpu} {mode}" for gpu, mode in enumerate((0, 3, 2, 1, 9))))
    )  # fmt: skip
    devices = bench.open(scenario).devices
    assert {(device.driver, device.platform) for device in devices} == {("595.71.05", "CUDA 13.1")}
    assert [device.compute_mode for device in devices] == [
        "default", "exclusive process", "prohibited", "exclusive thread", "mode 9"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "field", "reason"),
    [
        (["fail nvmlSystemGetDriverVersion * UNKNOWN"], "driver", Reason.FAILED),
        (
            ["fail nvmlSystemGetCudaDriverVersion * FUNCTION_NOT_FOUND"],
            "platform",
            Reason.UNSUPPORTED,
        ),
        (["cuda 0"], "platform", Reason.FAILED),
        (["fail nvmlDeviceGetComputeMode 0 NOT_SUPPORTED"], "compute_mode", Reason.UNSUPPORTED),
        (["fail nvmlDeviceGetComputeMode 0 NO_PERMISSION"], "compute_mode", Reason.FORBIDDEN),
    ],
)
def test_a_fact_that_the_driver_does_not_report_is_missing(
    bench: Bench, lines: list[str], field: str, reason: Reason
) -> None:
    (device,) = bench.open(ONE.plus(*lines)).devices
    facts = {name: getattr(device, name) for name in ("driver", "platform", "compute_mode")}
    assert reason_of(facts.pop(field)) is reason
    assert all(isinstance(fact, str) for fact in facts.values())


def test_a_slice_has_the_facts_and_the_p_state_of_its_gpu(bench: Bench) -> None:
    scenario = Scenario.load("a100_mig").plus("compute_mode 0 3", "p_state 0 2", "p_state 1 0")
    source = bench.open(scenario)
    bench.read(source, 0)
    assert [device.compute_mode for device in source.devices] == [
        "exclusive process", "exclusive process", "default"
    ]  # fmt: skip
    assert {device.driver for device in source.devices} == {"550.54.15"}
    found = source.details()
    assert [found[device.id].state.p_state for device in source.devices] == [2, 2, 0]
    assert found[mig_uuid(0, 0)].processes == {}


@pytest.mark.parametrize(
    ("line", "reason", "asked"),
    [
        ("p_state 0 32", Reason.FAILED, 2),
        ("fail nvmlDeviceGetPerformanceState 0 NOT_SUPPORTED", Reason.UNSUPPORTED, 0),
        ("fail nvmlDeviceGetPerformanceState 0 FUNCTION_NOT_FOUND", Reason.UNSUPPORTED, 0),
    ],
)
def test_a_p_state_that_is_not_known_is_missing(
    bench: Bench, line: str, reason: Reason, asked: int
) -> None:
    source = bench.open(ONE.plus(line))
    bench.read(source, 0)
    details(source)
    calls = bench.count_calls("nvmlDeviceGetPerformanceState")
    for second in range(1, 6):
        bench.read(source, second)
        assert reason_of(details(source).state.p_state) is reason
    assert len(calls) == asked, "what is not offered is not asked again"


def test_a_p_state_that_failed_is_read_again(bench: Bench) -> None:
    """A call that fails at first may be expensive when it works, so it is made rarely."""
    source = bench.open(ONE.plus("fail nvmlDeviceGetPerformanceState 0 TIMEOUT"))
    calls = bench.count_calls("nvmlDeviceGetPerformanceState")
    for second in range(31):
        bench.read(source, second)
        assert reason_of(details(source).state.p_state) is Reason.FAILED
    assert len(calls) == 1 + 4


MIXED = ("101 1000 C", "102 24 G", "103 8 CG", "104 9 CM", "105 -1 G", "999 5 G", "998 5 M")
PIDS = (101, 102, 103, 104, 105)


def test_each_process_has_the_types_of_the_lists_that_name_it(bench: Bench) -> None:
    source = bench.open(bench.with_processes(*MIXED))
    values = bench.read(source, 1, *PIDS)[gpu_uuid(0)]
    assert values["gpu_job_processes"] == 3, "only processes that compute are counted"
    found = details(source)
    assert found.processes == {
        101: GpuProcess(1000 * MIB, ("compute",)),
        102: GpuProcess(24 * MIB, ("graphics",)),
        103: GpuProcess(8 * MIB, ("compute", "graphics")),
        104: GpuProcess(9 * MIB, ("MPS", "compute")),
        105: GpuProcess(None, ("graphics",)),
    }
    assert found.state.unlisted == {}


def test_an_old_driver_lists_what_it_can(bench: Bench) -> None:
    source = bench.open(bench.with_processes(*MIXED, scenario=Scenario.load("v100x4")))
    bench.read(source, 1, *PIDS)
    found = details(source)
    assert source.devices[0].platform == "CUDA 11.0"
    assert found.state.unlisted == {"MPS": TOO_OLD}
    assert found.processes[102].types == ("graphics",), "listed by its older call"
    assert found.processes[104].types == ("compute",)


@pytest.mark.parametrize(("kind", "name"), [("graphics", "Graphics"), ("MPS", "MPSCompute")])
def test_a_list_that_is_refused_has_its_reason(bench: Bench, kind: str, name: str) -> None:
    scenario = bench.with_processes(*MIXED).plus(
        f"fail nvmlDeviceGet{name}RunningProcesses_v3 * NOT_SUPPORTED",
        f"fail nvmlDeviceGet{name}RunningProcesses_v2 * FUNCTION_NOT_FOUND",
    )
    source = bench.open(scenario)
    bench.read(source, 1, *PIDS)
    found = details(source)
    assert found.state.unlisted == {kind: TOO_OLD}
    assert found.processes[101].types == ("compute",)
    source.close()
    forbidden = bench.with_processes(*MIXED).plus(
        f"fail nvmlDeviceGet{name}RunningProcesses_v3 * NO_PERMISSION"
    )
    source = bench.open(forbidden)
    bench.read(source, 1, *PIDS)
    assert reason_of(details(source).state.unlisted[kind]) is Reason.FORBIDDEN


def test_in_a_container_ids_that_cannot_be_compared_name_no_process(bench: Bench) -> None:
    bench.set_namespace("pid:[4026532999]")
    source = bench.open(bench.with_processes("4711 8 G"))
    bench.read(source, 1, 101)
    assert details(source).processes == {}


CALLS = (
    "nvmlDeviceGetPerformanceState",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
)


def test_without_a_viewer_the_driver_is_asked_nothing(bench: Bench) -> None:
    counted = [bench.count_calls(name) for name in CALLS]
    source = bench.open("h100x8_busy")
    for second in range(40):
        bench.read(source, second)
    assert counted == [[], [], []]


def test_with_a_viewer_the_lists_are_read_for_some_gpus_at_a_time(bench: Bench) -> None:
    counted = [bench.count_calls(name) for name in CALLS]
    source = bench.open("h100x8_busy")
    bench.read(source, 0)
    source.details()
    assert [len(calls) for calls in counted[1:]] == [8, 8], "a viewer waits for its first sample"
    for calls in counted:
        calls.clear()
    most = 0
    for second in range(1, 41):
        bench.read(source, second)
        before = len(counted[1])
        source.details()
        most = max(most, len(counted[1]) - before)
    assert [len(calls) for calls in counted] == [8 * 20, 8 * 8, 8 * 8]
    assert most == 2


def test_a_slow_p_state_is_read_for_one_gpu_at_a_time(bench: Bench) -> None:
    calls = bench.count_calls("nvmlDeviceGetPerformanceState", cost_s=0.0004)
    source = bench.open("h100x8_busy")
    bench.read(source, 0)
    source.details()
    begun = len(calls)
    for second in range(1, 41):
        bench.read(source, second)
        before = len(calls)
        source.details()
        assert len(calls) - before <= 1
    assert len(calls) - begun == 8 * 4


def test_a_viewer_that_comes_back_gets_new_values(bench: Bench) -> None:
    bench.count_calls("nvmlDeviceGetPerformanceState", cost_s=0.0004)
    source = bench.open(bench.with_processes("101 8 C"))
    bench.read(source, 0, 101)
    assert details(source).processes[101].types == ("compute",)
    bench.with_processes("101 8 CG")
    bench.read(source, 1, 101)
    assert details(source).processes[101].types == ("compute",), "read at every fifth sample"
    bench.read(source, 600, 101)
    assert details(source).processes[101].types == ("compute", "graphics")


def test_a_lost_gpu_has_no_p_state(bench: Bench) -> None:
    source = bench.open("h100x4_one_lost")
    bench.read(source, 0)
    assert details(source, 2).state.p_state == 0
    bench.read(source, 5)
    found = details(source, 2)
    assert reason_of(found.state.p_state) is Reason.FAILED
    assert found.processes == {}
    assert details(source, 1).state.p_state == 0
