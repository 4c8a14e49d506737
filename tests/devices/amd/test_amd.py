from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.amd_tree import (
    NOBODY,
    AmdTree,
    RefusingKernel,
    build_mi100,
    build_mi210,
    build_mi250x,
    build_mi300a,
    build_mi300x,
    open_amd,
    reason_of,
)
from teho.devices.procfile import number_in, parse_number
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason


def open_file_count() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_every_metric_of_the_table_is_answered_and_no_other(tmp_path: Path) -> None:
    expected = {metric.name for metric in metrics_of("gpu")}
    builders = (build_mi100, build_mi210, build_mi250x, build_mi300a, build_mi300x)
    for number, build in enumerate(builders):
        root = tmp_path / str(number)
        root.mkdir()
        tree = build(root)
        source = open_amd(tree)
        for gpu in tree.gpus:
            gpu.run(1, power_w=100)
        for values in source.read(NOBODY).values():
            assert set(values) == expected


def test_readings_have_the_units_of_the_table(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path, busy=[97, 3])
    tree.gpus[0].write("mem_busy_percent", 41)
    tree.gpus[0].write("power1_average", 512_500_000)
    readings = open_amd(tree).read(NOBODY)
    first, second = tree.gpus[0].of(readings), tree.gpus[1].of(readings)
    assert first["gpu_busy_percent"] == 97
    assert first["gpu_memory_busy_percent"] == 41
    assert first["gpu_memory_used_bytes"] == 10_000_000
    assert isinstance(first["gpu_memory_used_bytes"], int)
    assert first["gpu_power_w"] == 512.5
    assert first["gpu_sm_clock_mhz"] == 1700.0
    assert first["gpu_memory_clock_mhz"] == 1600.0
    assert first["gpu_temperature_c"] == 48.0
    assert first["gpu_job_processes"] == 0
    assert second["gpu_busy_percent"] == 3


def test_what_sysfs_does_not_offer_says_why(mi210: AmdTree) -> None:
    values = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))
    for metric in (
        "gpu_sm_active_percent",
        "gpu_tensor_percent",
        "gpu_fp64_percent",
        "gpu_fp32_percent",
        "gpu_fp16_percent",
        "gpu_integer_percent",
        "gpu_dram_percent",
        "gpu_pcie_receive_bytes_per_s",
        "gpu_pcie_send_bytes_per_s",
        "gpu_nvlink_receive_bytes_per_s",
        "gpu_nvlink_send_bytes_per_s",
        "gpu_nvlink_errors",
        "gpu_xid_errors",
        "gpu_job_busy_percent",
    ):
        assert reason_of(values[metric]) is Reason.UNSUPPORTED
    assert all(value.detail for value in values.values() if isinstance(value, Missing))


def test_new_values_are_seen_through_the_files_kept_open(
    mi210: AmdTree, kernel: RefusingKernel
) -> None:
    source = open_amd(mi210)
    kernel.opened.clear()
    for percent in (0, 100, 7):
        mi210.gpus[0].write("gpu_busy_percent", percent)
        assert mi210.gpus[0].of(source.read(NOBODY))["gpu_busy_percent"] == percent
    assert kernel.opened == []


# --- power, temperature, memory: what the products do differently ----------------------------


def test_silent_die_has_no_power(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    readings = open_amd(tree).read(NOBODY)
    for position in range(8):
        power = tree.gpus[position].of(readings)["gpu_power_w"]
        if position % 2:
            assert reason_of(power) is Reason.UNSUPPORTED
            assert "other die" in power.detail  # type: ignore[attr-defined]
        else:
            assert power == 300.0


def test_silent_die_is_not_asked_again_but_a_lapse_is(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    source = open_amd(tree)
    source.read(NOBODY)
    tree.gpus[0].write("power1_average", 0)
    tree.gpus[1].write("power1_average", 100_000_000)
    readings = source.read(NOBODY)
    assert reason_of(tree.gpus[0].of(readings)["gpu_power_w"]) is Reason.UNSUPPORTED
    assert reason_of(tree.gpus[1].of(readings)["gpu_power_w"]) is Reason.UNSUPPORTED
    tree.gpus[0].write("power1_average", 250_000_000)
    assert tree.gpus[0].of(source.read(NOBODY))["gpu_power_w"] == 250.0


def test_zero_watts_of_a_whole_card_is_a_failure(mi210: AmdTree) -> None:
    mi210.gpus[0].write("power1_average", 0)
    power = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_power_w"]
    assert power == Missing(Reason.FAILED, "the power sensor reads 0 W, which cannot be true")


@pytest.mark.parametrize("average", ["absent", "unsupported", "0", "N/A"])
def test_present_power_replaces_a_missing_average(
    mi210: AmdTree, kernel: RefusingKernel, average: str
) -> None:
    gpu = mi210.gpus[0]
    gpu.write("power1_input", 123_000_000)
    if average == "absent":
        gpu.remove("power1_average")
    elif average == "unsupported":
        kernel.refused_read["power1_average"] = errno.EOPNOTSUPP
    else:
        gpu.write("power1_average", average)
    assert mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_power_w"] == 123.0


def test_average_power_is_preferred(mi210: AmdTree) -> None:
    mi210.gpus[0].write("power1_input", 123_000_000)
    assert mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_power_w"] == 210.0


@pytest.mark.parametrize(
    ("labels", "expected_c"),
    [
        ({1: "edge", 2: "junction", 3: "mem"}, 44.0),
        ({1: "junction", 2: "mem"}, 38.0),
        ({1: "mem", 3: "edge"}, 50.0),
        ({}, 38.0),
        ({3: "mem"}, 38.0),
    ],
)
def test_temperature_is_the_junction_then_the_edge(
    mi210: AmdTree, labels: dict[int, str], expected_c: float
) -> None:
    gpu = mi210.gpus[0]
    gpu.remove("temp1_label", "temp2_label", "temp3_label")
    for number, label in labels.items():
        gpu.write(f"temp{number}_label", label)
    assert mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_temperature_c"] == expected_c


@pytest.mark.parametrize("is_hidden", [False, True])
def test_apu_has_no_memory_of_its_own(tmp_path: Path, is_hidden: bool) -> None:
    tree = build_mi300a(tmp_path)
    if is_hidden:  # as newer kernels do
        for gpu in tree.gpus:
            gpu.remove("mem_info_vram_total", "mem_info_vram_used")
    tree.add_process(50, {0: 0, 1: 0, 2: 0, 3: 0})
    source = open_amd(tree)
    assert source.devices[0].name == "AMD Instinct MI300A"
    assert source.devices[0].memory_bytes is None
    values = tree.gpus[0].of(source.read(frozenset({50})))
    for metric in ("gpu_memory_used_bytes", "gpu_job_processes", "gpu_job_memory_bytes"):
        assert reason_of(values[metric]) is Reason.UNSUPPORTED
    assert values["gpu_power_w"] == 350.0
    assert values["gpu_temperature_c"] == 55.0
    assert reason_of(values["gpu_memory_clock_mhz"]) is Reason.ABSENT


# --- refusals and nonsense ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOENT, Reason.ABSENT),
        (errno.EACCES, Reason.FORBIDDEN),
        (errno.EPERM, Reason.FORBIDDEN),
        (errno.EMFILE, Reason.FAILED),
    ],
)
def test_file_that_does_not_open(
    mi210: AmdTree, kernel: RefusingKernel, code: int, expected: Reason
) -> None:
    kernel.refused_open["gpu_busy_percent"] = code
    busy = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_busy_percent"]
    assert busy == Missing(expected, f"gpu_busy_percent: {os.strerror(code)}")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.EACCES, Reason.FORBIDDEN),
        (errno.EOPNOTSUPP, Reason.UNSUPPORTED),
        (errno.EBUSY, Reason.FAILED),
        (errno.EINVAL, Reason.FAILED),
        (errno.ENODEV, Reason.FAILED),
    ],
)
@pytest.mark.parametrize("when", ["first", "later"])
def test_file_that_does_not_read(
    mi210: AmdTree, kernel: RefusingKernel, code: int, expected: Reason, when: str
) -> None:
    source = open_amd(mi210) if when == "later" else None
    kernel.refused_read["gpu_busy_percent"] = code
    busy = mi210.gpus[0].of((source or open_amd(mi210)).read(NOBODY))["gpu_busy_percent"]
    assert busy == Missing(expected, f"gpu_busy_percent: {os.strerror(code)}")


def test_gpu_in_reset_is_a_failure_and_comes_back(mi210: AmdTree, kernel: RefusingKernel) -> None:
    source = open_amd(mi210)
    kernel.refused_read["freq1_input"] = errno.EPERM
    clock = mi210.gpus[0].of(source.read(NOBODY))["gpu_sm_clock_mhz"]
    assert reason_of(clock) is Reason.FAILED
    assert "reset" in str(clock.detail)  # type: ignore[attr-defined]
    kernel.refused_read.clear()
    assert mi210.gpus[0].of(source.read(NOBODY))["gpu_sm_clock_mhz"] == 1700.0


def test_forbidden_file_is_asked_again_but_not_an_absent_one(
    mi210: AmdTree, kernel: RefusingKernel
) -> None:
    kernel.refused_open = {"gpu_busy_percent": errno.EACCES, "mem_busy_percent": errno.ENOENT}
    source = open_amd(mi210)
    kernel.refused_open.clear()
    kernel.opened.clear()
    values = mi210.gpus[0].of(source.read(NOBODY))
    assert values["gpu_busy_percent"] == 0
    assert reason_of(values["gpu_memory_busy_percent"]) is Reason.ABSENT
    assert kernel.opened == ["gpu_busy_percent"]


def test_folder_in_place_of_a_file_is_a_failure(mi210: AmdTree) -> None:
    mi210.gpus[0].remove("gpu_busy_percent")
    mi210.gpus[0].path("gpu_busy_percent").mkdir()
    busy = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_busy_percent"]
    assert busy == Missing(Reason.FAILED, f"gpu_busy_percent: {os.strerror(errno.EISDIR)}")


def test_bare_card_answers_absent_for_everything(mi210: AmdTree) -> None:
    gpu = mi210.gpus[0]
    for path in gpu.folder.rglob("*"):
        if path.is_file() and path.name not in {"vendor", "device"}:
            path.unlink()
    (gpu.folder / "hwmon" / "hwmon3").rmdir()
    (gpu.folder / "hwmon").rmdir()
    values = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))
    there = {name for name, value in values.items() if not isinstance(value, Missing)}
    assert there == {"gpu_sm_occupancy_percent"}  # KFD has it: no process of the job
    for metric in ("gpu_power_w", "gpu_energy_j", "gpu_power_throttle_percent"):
        assert reason_of(values[metric]) is Reason.ABSENT


NONSENSE = [
    "",
    "\n",
    "-5",
    "+5",
    "N/A",
    "12.5",
    "1e3",
    "0x10",
    "5 5",
    "\uff11\uff12",
    "\x00",
    "9" * 40,
]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_never_a_number(mi210: AmdTree, text: str) -> None:
    source = open_amd(mi210)
    names = ("gpu_busy_percent", "mem_info_vram_used", "power1_average", "temp2_input")
    for name in names:
        mi210.gpus[0].write(name, text)
    values = mi210.gpus[0].of(source.read(NOBODY))
    for metric in (
        "gpu_busy_percent",
        "gpu_memory_used_bytes",
        "gpu_power_w",
        "gpu_temperature_c",
    ):
        assert reason_of(values[metric]) is Reason.FAILED


def test_more_than_a_hundred_percent_is_a_failure(mi210: AmdTree) -> None:
    mi210.gpus[0].write("gpu_busy_percent", 65535)
    busy = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))["gpu_busy_percent"]
    assert busy == Missing(Reason.FAILED, "gpu_busy_percent: 65535 is above 100")


@given(st.integers(min_value=0, max_value=10**18 - 1), st.sampled_from(["", "\n", " \n"]))
def test_numbers_come_back(number: int, end: str) -> None:
    assert parse_number(f"{number}{end}".encode()) == number


@given(st.binary(max_size=80) | st.from_regex(r"\s*[+-]?[0-9_. ]{1,30}\s*").map(str.encode))
def test_an_answer_is_a_whole_number_or_an_error(answer: bytes) -> None:
    plain = answer.strip()
    if plain and len(plain) <= 18 and set(plain) <= set(b"0123456789"):
        assert parse_number(answer) == int(plain)
    else:
        with pytest.raises(ValueError, match="is not a number of 1 to 18 digits"):
            parse_number(answer)


def test_a_file_with_nonsense_is_closed_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("nonsense")
    before = open_file_count()
    with pytest.raises(ValueError, match="nonsense"):
        number_in(str(tmp_path / "file"))
    assert open_file_count() == before


# --- in mid-run -----------------------------------------------------------------------------
def test_card_that_vanishes_fails_and_the_others_continue(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=2)
    source = open_amd(tree)
    source.read(NOBODY)
    tree.gpus[0].vanish()
    for _ in range(2):
        readings = source.read(NOBODY)
        for metric in ("gpu_busy_percent", "gpu_power_w", "gpu_memory_used_bytes"):
            assert reason_of(tree.gpus[0].of(readings)[metric]) is Reason.FAILED
        assert tree.gpus[1].of(readings)["gpu_busy_percent"] == 0


def test_close_gives_all_files_back(tmp_path: Path) -> None:
    before = open_file_count()
    source = open_amd(build_mi250x(tmp_path))
    source.read(NOBODY)
    assert open_file_count() > before
    source.close()
    source.close()
    assert open_file_count() == before
    assert source.read(NOBODY) == {}
