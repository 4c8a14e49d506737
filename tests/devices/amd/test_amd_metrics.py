from __future__ import annotations

import ctypes
import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.amd_table import FIELDS, V1_6_OF_OLD, struct_of
from stubs.amd_tree import NOBODY, RefusingKernel, build_mi210, build_mi250x, open_amd, reason_of
from teho.devices.amd.metrics import decode
from teho.model.missing import Missing, Reason

REVISIONS = sorted(FIELDS)

KERNEL_NAMES = {
    "gfx": "average_gfx_activity",
    "memory": "average_umc_activity",
    "energy": "energy_accumulator",
    "clock_ns": "system_clock_counter",
    "gfx_sum": "gfx_activity_acc",
    "memory_sum": "mem_activity_acc",
    "time": "firmware_timestamp",
    "causes": "indep_throttle_status",
    "throttlers": "throttle_status",
    "steps": "accumulation_counter",
    "prochot": "prochot_residency_acc",
    "power": "ppt_residency_acc",
    "socket": "socket_thm_residency_acc",
    "regulator": "vr_thm_residency_acc",
    "hbm": "hbm_thm_residency_acc",
}


@pytest.mark.parametrize(("revision", "size"), [((1, 1), 96), ((1, 2), 104), ((1, 3), 120)])
def test_the_stubs_structs_have_the_sizes_that_real_tables_begin_with(
    revision: tuple[int, int], size: int
) -> None:
    assert ctypes.sizeof(struct_of(revision)) == size


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_field_is_found_where_the_c_compiler_puts_it(revision: tuple[int, int]) -> None:
    table = struct_of(revision)
    plain = [name for name, kind in FIELDS[revision][3:] if not hasattr(kind, "_length_")]
    for number, name in enumerate(plain, start=1):
        setattr(table, name, number)
    found = decode(bytes(table))
    assert not isinstance(found, Missing)
    assert found == {name: getattr(table, KERNEL_NAMES[name]) for name in found}
    assert set(found) == kept_of(revision)


def kept_of(revision: tuple[int, int]) -> set[str]:
    """Return the names of the fields that Teho keeps."""
    wanted = {"energy", "clock_ns", "gfx", "memory"}
    if revision >= (1, 1):
        wanted |= {"gfx_sum", "memory_sum"}
    if revision >= (1, 2):
        wanted |= {"time"}
    if revision == (1, 3):
        wanted |= {"causes"}
    if revision in {(1, 4), (1, 5)}:
        wanted |= {"throttlers"}
    if revision >= (1, 6):
        wanted |= {"steps", "prochot", "power", "socket", "regulator", "hbm"}
    return wanted


@given(st.sampled_from(REVISIONS), st.integers(0, 2**64 - 2), st.integers(0, 2**16 - 2))
def test_numbers_of_full_width_come_back(
    revision: tuple[int, int], energy: int, activity: int
) -> None:
    table = struct_of(revision)
    table.energy_accumulator = energy
    table.average_gfx_activity = activity
    found = decode(bytes(table))
    assert not isinstance(found, Missing)
    whole = energy % 2**32 if revision == (1, 0) else energy
    assert found.get("energy", 2**32 - 1) == whole
    assert found["gfx"] == activity


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_the_driver_leaves_out_is_no_number(revision: tuple[int, int]) -> None:
    assert decode(bytes(struct_of(revision))) == {}


@pytest.mark.parametrize("revision", [(1, 9), (1, 255), (2, 4), (3, 0), (0, 0)])
def test_unknown_revision_is_named(revision: tuple[int, int]) -> None:
    table = struct_of((1, 3))
    table.format_revision, table.content_revision = revision
    answer = decode(bytes(table))
    assert reason_of(answer) is Reason.UNSUPPORTED  # type: ignore[arg-type]
    assert f"v{revision[0]}.{revision[1]}" in answer.detail  # type: ignore[union-attr]


def test_the_other_table_that_was_once_v1_6_is_not_misread() -> None:
    table = struct_of((1, 6), V1_6_OF_OLD)
    table.energy_accumulator = 1
    assert reason_of(decode(bytes(table))) is Reason.UNSUPPORTED  # type: ignore[arg-type]


@given(st.sampled_from(REVISIONS), st.data())
def test_table_that_is_cut_short_is_a_failure(
    revision: tuple[int, int], data: st.DataObject
) -> None:
    content = bytes(struct_of(revision))
    known = decode(content)
    size = data.draw(st.integers(0, len(content) - 1))
    answer = decode(content[:size])
    if isinstance(answer, Missing):
        assert answer.reason is Reason.FAILED
    else:
        assert answer == known  # what was cut off is not needed


@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_a_reason(content: bytes) -> None:
    answer = decode(content)
    if isinstance(answer, Missing):
        assert answer.reason in {Reason.FAILED, Reason.UNSUPPORTED}
        assert "gpu_metrics" in answer.detail
        if answer.reason is Reason.FAILED:
            assert f"only {len(content)} bytes" in answer.detail
    else:
        assert answer.keys() <= KERNEL_NAMES.keys()


@given(st.sampled_from(REVISIONS), st.binary(min_size=1, max_size=200))
def test_any_content_below_a_known_header_is_its_fields(
    revision: tuple[int, int], content: bytes
) -> None:
    header = bytes(struct_of(revision))[:4]
    size = ctypes.sizeof(struct_of(revision))
    data = (header + content * size)[:size]
    table = type(struct_of(revision)).from_buffer_copy(data)
    values = {name: getattr(table, KERNEL_NAMES[name]) for name in kept_of(revision)}
    bits = {name: 8 * getattr(type(table), KERNEL_NAMES[name]).size for name in values}
    assert decode(data) == {
        name: value for name, value in values.items() if value != 2 ** bits[name] - 1
    }


# --- through the source ----------------------------------------------------------------------


def test_table_of_an_unknown_revision_is_reported_for_each_metric_and_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_mi210(tmp_path, count=1)
    table = struct_of((1, 3))
    table.content_revision = 9
    tree.gpus[0].write_table(bytes(table))
    kernel = RefusingKernel(monkeypatch)
    source = open_amd(tree)
    kernel.opened.clear()
    values = tree.gpus[0].of(source.read(NOBODY))
    for metric in ("gpu_energy_j", "gpu_thermal_throttle_percent", "gpu_power_throttle_percent"):
        assert "v1.9" in values[metric].detail  # type: ignore[union-attr]
    assert values["gpu_busy_percent"] == 0
    assert "gpu_metrics" not in kernel.opened


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOENT, Reason.ABSENT),
        (errno.EOPNOTSUPP, Reason.UNSUPPORTED),
        (errno.EACCES, Reason.FORBIDDEN),
        (errno.EIO, Reason.FAILED),
    ],
)
def test_table_that_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, expected: Reason
) -> None:
    tree = build_mi250x(tmp_path)
    kernel = RefusingKernel(monkeypatch)
    kernel.refused_open["gpu_metrics"] = code
    readings = open_amd(tree).read(NOBODY)
    for gpu in tree.gpus:
        assert reason_of(gpu.of(readings)["gpu_energy_j"]) is expected
    # Which die reports is known from the power.
    assert tree.gpus[0].of(readings)["gpu_power_w"] == 300.0


def test_table_that_fails_for_a_while_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_mi210(tmp_path, count=1)
    gpu = tree.gpus[0]
    source = open_amd(tree)
    kernel = RefusingKernel(monkeypatch)
    kernel.refused_read["gpu_metrics"] = errno.EBUSY
    assert reason_of(gpu.of(source.read(NOBODY))["gpu_energy_j"]) is Reason.FAILED
    kernel.refused_read.clear()
    gpu.run(3, power_w=100)
    assert gpu.of(source.read(NOBODY))["gpu_energy_j"] == pytest.approx(gpu.firmware.energy_j)
