from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stubs.amd_models import GIB, MI210
from stubs.amd_tree import (
    AmdTree,
    GpuTree,
    RefusingKernel,
    build_amd,
    build_mi210,
    build_mi300a,
    open_amd,
    reason_of,
)
from teho.model.device import GpuProcess
from teho.model.missing import Missing, Reason


def test_processes_of_the_job_count_on_gpus_with_their_memory(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=2)
    tree.add_process(50, {0: 3 * GIB, 1: 0})
    tree.add_process(51, {0: GIB, 1: GIB})
    tree.add_process(99, {0: 7 * GIB, 1: 7 * GIB})  # another job's
    source = open_amd(tree)
    readings = source.read(frozenset({50, 51, 52}))
    first, second = tree.gpus[0].of(readings), tree.gpus[1].of(readings)
    assert (first["gpu_job_processes"], first["gpu_job_memory_bytes"]) == (2, 4 * GIB)
    assert (second["gpu_job_processes"], second["gpu_job_memory_bytes"]) == (1, GIB)
    details = source.details()
    assert [details[device.id].processes for device in source.devices] == [
        {50: GpuProcess(3 * GIB, ("compute",)), 51: GpuProcess(GIB, ("compute",))},
        {51: GpuProcess(GIB, ("compute",))},
    ]
    state = details[source.devices[0].id].state
    assert reason_of(state.p_state) is Reason.UNSUPPORTED
    assert reason_of(state.unlisted["graphics"]) is Reason.UNSUPPORTED
    tree.end_process(50)
    first = tree.gpus[0].of(source.read(frozenset({50, 51})))
    assert (first["gpu_job_processes"], first["gpu_job_memory_bytes"]) == (1, GIB)


def test_gpu_that_no_process_may_use_is_unused(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=2)
    tree.add_process(50, {1: GIB})
    readings = open_amd(tree).read(frozenset({50}))
    assert tree.gpus[0].of(readings)["gpu_job_processes"] == 0
    assert tree.gpus[1].of(readings)["gpu_job_processes"] == 1


def test_old_kernel_lists_processes_without_memory(mi210: AmdTree) -> None:
    mi210.add_process(50, {})
    source = open_amd(mi210)
    assert reason_of(mi210.gpus[0].of(source.read(frozenset({50})))["gpu_job_processes"]) is (
        Reason.ABSENT
    )
    assert mi210.gpus[0].of(source.read(frozenset({51})))["gpu_job_processes"] == 0


def test_process_list_that_is_not_there(mi210: AmdTree) -> None:
    (mi210.kfd / "proc").rmdir()
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert values["gpu_job_processes"] == Missing(
        Reason.ABSENT, f"kfd/proc: {os.strerror(errno.ENOENT)}"
    )


def test_container_cannot_match_processes(mi210: AmdTree) -> None:
    namespace = mi210.root / "proc/self/ns"
    namespace.mkdir(parents=True)
    (namespace / "pid").symlink_to("pid:[4026532001]")
    mi210.add_process(50, {0: GIB})
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert reason_of(values["gpu_job_memory_bytes"]) is Reason.UNSUPPORTED
    (namespace / "pid").unlink()
    (namespace / "pid").symlink_to("pid:[4026531836]")
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert values["gpu_job_memory_bytes"] == GIB


def vram_name(gpu: GpuTree) -> str:
    return f"vram_{gpu.kfd_id}"


@pytest.mark.parametrize(
    ("code", "expected"), [(errno.EACCES, Reason.FORBIDDEN), (errno.EIO, Reason.FAILED)]
)
def test_process_that_does_not_open(
    tmp_path: Path, kernel: RefusingKernel, code: int, expected: Reason
) -> None:
    tree = build_mi210(tmp_path, count=2)
    tree.add_process(50, {0: GIB, 1: GIB})
    kernel.refused_open[vram_name(tree.gpus[0])] = code
    readings = open_amd(tree).read(frozenset({50}))
    assert reason_of(tree.gpus[0].of(readings)["gpu_job_processes"]) is expected
    assert tree.gpus[1].of(readings)["gpu_job_processes"] == 1


def test_process_that_ends_while_it_is_read(
    mi210: AmdTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_amd(mi210)
    listings = [["50"], []]
    monkeypatch.setattr(os, "listdir", lambda _: listings.pop(0))
    values = mi210.gpus[0].of(source.read(frozenset({50})))
    assert values["gpu_job_processes"] == 0
    assert listings == []


def test_file_of_a_process_that_is_gone(tmp_path: Path, kernel: RefusingKernel) -> None:
    tree = build_mi210(tmp_path, count=2)
    tree.add_process(50, {0: GIB, 1: GIB})
    kernel.refused_read[vram_name(tree.gpus[0])] = errno.ENODEV
    readings = open_amd(tree).read(frozenset({50}))
    assert tree.gpus[0].of(readings)["gpu_job_memory_bytes"] == 0
    assert tree.gpus[1].of(readings)["gpu_job_memory_bytes"] == GIB


def test_nonsense_of_a_process_is_no_number(mi210: AmdTree) -> None:
    mi210.add_process(50, {0: "-4096"})
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert reason_of(values["gpu_job_memory_bytes"]) is Reason.FAILED


# --- compute units that the job's processes occupy -------------------------------------------


def occupancy(tree: AmdTree, position: int, *pids: int) -> object:
    readings = open_amd(tree).read(frozenset(pids))
    return tree.gpus[position].of(readings)["gpu_sm_occupancy_percent"]


def test_occupied_units_of_all_the_jobs_processes_are_a_share_of_all_units(
    tmp_path: Path,
) -> None:
    tree = build_mi210(tmp_path, count=2)  # 104 units each
    tree.add_process(50, {0: GIB, 1: 0})
    tree.add_process(51, {0: GIB, 1: GIB})
    tree.add_process(99, {0: GIB, 1: GIB})  # another job's
    tree.occupy(50, {0: 26, 1: 0})
    tree.occupy(51, {0: 13, 1: 104})
    tree.occupy(99, {0: 60, 1: 60})
    assert occupancy(tree, 0, 50, 51) == pytest.approx(100 * 39 / 104)
    assert occupancy(tree, 1, 50, 51) == 100.0
    assert occupancy(tree, 0) == 0


def test_occupancy_is_not_taken_for_activity(mi210: AmdTree) -> None:
    """A matrix product fills a quarter of the slots for wavefronts and all compute units."""
    mi210.add_process(50, {0: GIB})
    mi210.occupy(50, {0: 26})
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert values["gpu_sm_occupancy_percent"] == 25.0
    assert reason_of(values["gpu_sm_active_percent"]) is Reason.UNSUPPORTED


def test_two_processes_that_round_up_do_not_exceed_the_whole(mi210: AmdTree) -> None:
    for pid in (50, 51):
        mi210.add_process(pid, {0: GIB})
        mi210.occupy(pid, {0: 53})
    assert occupancy(mi210, 0, 50, 51) == 100.0


def test_apu_counts_occupied_units_though_no_memory(tmp_path: Path) -> None:
    tree = build_mi300a(tmp_path, count=1)
    tree.add_process(50, {0: 0})
    tree.occupy(50, {0: 57})
    assert occupancy(tree, 0, 50) == 25.0


def test_partitions_add_up(tmp_path: Path) -> None:
    tree = build_amd(tmp_path, MI210, [0x11, 0x31])
    node, other = tree.gpus[1].node, tree.gpus[0].node
    assert node is not None
    assert other is not None
    text = (other / "properties").read_text().replace("unique_id", "unique_id 7\nwas")
    (node / "properties").write_text(text)
    tree.add_process(50, {0: GIB, 1: GIB})
    tree.occupy(50, {0: 104, 1: 52})
    assert occupancy(tree, 0, 50) == 75.0


def test_processes_that_use_no_memory_of_a_gpu_are_not_asked(
    mi210: AmdTree, kernel: RefusingKernel
) -> None:
    mi210.add_process(50, {0: 0})
    mi210.occupy(50, {0: 9})
    source = open_amd(mi210)
    kernel.opened.clear()
    source.read(frozenset({50}))
    assert "cu_occupancy" not in kernel.opened


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.ENOENT, Reason.ABSENT),
        (errno.EINVAL, Reason.UNSUPPORTED),
        (errno.EACCES, Reason.FORBIDDEN),
        (errno.EIO, Reason.FAILED),
    ],
)
def test_occupancy_that_does_not_read(
    mi210: AmdTree, kernel: RefusingKernel, code: int, expected: Reason
) -> None:
    mi210.add_process(50, {0: GIB})
    mi210.occupy(50, {0: 9})
    kernel.refused_open["cu_occupancy"] = code
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert reason_of(values["gpu_sm_occupancy_percent"]) is expected
    assert values["gpu_job_memory_bytes"] == GIB


def test_process_that_ends_before_its_occupancy_is_read(
    mi210: AmdTree, kernel: RefusingKernel
) -> None:
    mi210.add_process(50, {0: GIB})
    mi210.occupy(50, {0: 9})
    kernel.refused_read["cu_occupancy"] = errno.ENODEV
    assert occupancy(mi210, 0, 50) == 0


def test_nonsense_in_place_of_an_occupancy(mi210: AmdTree) -> None:
    mi210.add_process(50, {0: GIB})
    mi210.occupy(50, {0: "many"})
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert reason_of(values["gpu_sm_occupancy_percent"]) is Reason.FAILED


def test_unknown_number_of_units_makes_no_share(mi210: AmdTree) -> None:
    node = mi210.gpus[0].node
    assert node is not None
    properties = node / "properties"
    properties.write_text(properties.read_text().replace("simd_per_cu", "simd_per_bank"))
    mi210.add_process(50, {0: GIB})
    mi210.occupy(50, {0: 9})
    values = mi210.gpus[0].of(open_amd(mi210).read(frozenset({50})))
    assert reason_of(values["gpu_sm_occupancy_percent"]) is Reason.ABSENT
