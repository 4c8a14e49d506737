"""Which GPUs a task sees, and which cores lie near each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_trees import LUMI_NUMA, lumi_g, puhti

from teho.errors import InputError
from teho.launch.gpus import Gpus, find_gpus, parse_cores

FIRST, SECOND = frozenset(range(20)), frozenset(range(20, 40))
CUDA, ROCR = "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"


@pytest.fixture(scope="module")
def v100s(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(puhti(tmp_path_factory.mktemp("puhti")))


@pytest.fixture(scope="module")
def gcds(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(lumi_g(tmp_path_factory.mktemp("lumi")))


def sides(gpus: Gpus) -> list[int | None]:
    """Return the processor that each GPU is near to."""
    return [None if near is None else [FIRST, SECOND].index(near) for near in gpus.near]


def numa(gpus: Gpus) -> list[int | None]:
    return [None if near is None else min(near) // 16 for near in gpus.near]


@pytest.mark.parametrize(
    ("environment", "names", "near"),
    [
        ({}, "0 1 2 3", [0, 0, 1, 1]),
        ({CUDA: "0,1,2,3"}, "0 1 2 3", [0, 0, 1, 1]),
        ({CUDA: "3,0"}, "3 0", [1, 0]),
        ({CUDA: " 3 , 0 "}, "3 0", [1, 0]),
        # What runtimes read no further than.
        ({CUDA: "2,"}, "2", [1]),
        ({CUDA: "2,,3"}, "2", [1]),
        ({CUDA: "1,-1,2"}, "1", [0]),
        ({CUDA: "7"}, "7", [None]),
        ({CUDA: "GPU-20000000-aaaa-bbbb-cccc-dddddddddddd"}, None, [1]),
        ({CUDA: "GPU-2,GPU-0"}, "GPU-2 GPU-0", [1, 0]),
        ({CUDA: "MIG-20000000-aaaa-bbbb-cccc-dddddddddddd"}, None, [None]),
        ({CUDA: "GPU-9"}, "GPU-9", [None]),
        # Slurm's own numbers, where it renumbers, and where it does not.
        ({CUDA: "0,1", "SLURM_STEP_GPUS": "2,3"}, "0 1", [1, 1]),
        ({CUDA: "2,3", "SLURM_STEP_GPUS": "2,3"}, "2 3", [1, 1]),
        ({CUDA: "0,1", "SLURM_JOB_GPUS": "1-2"}, "0 1", [0, 1]),
        ({CUDA: "0,1", "SLURM_STEP_GPUS": "0,3", "SLURM_JOB_GPUS": "1,2"}, "0 1", [0, 1]),
        ({CUDA: "0", "SLURM_STEP_GPUS": "rubbish"}, "0", [0]),
        ({"SLURM_JOB_ID": "1", "SLURM_GPUS_ON_NODE": "4"}, "0 1 2 3", [0, 0, 1, 1]),
        # Nothing of AMD's is there.
        ({CUDA: "0", ROCR: "0,1"}, "0", [0]),
    ],
)
def test_nvidia(v100s: str, environment: dict[str, str], names: str | None, near: list[int | None]):
    gpus = find_gpus(environment, v100s)
    assert gpus.names == (names.split() if names else [environment[CUDA]])
    assert gpus.variable == CUDA
    assert sides(gpus) == near
    assert bool(gpus.why_unknown) == (None in near)


@pytest.mark.parametrize(
    "environment",
    [
        {CUDA: ""}, {CUDA: "-1"}, {CUDA: "NoDevFiles"}, {CUDA: " "},
        # A job that asked for none, where nothing shuts it off from the node's.
        {"SLURM_JOB_ID": "1"},
    ],
)  # fmt: skip
def test_no_gpu(v100s: str, environment: dict[str, str]):
    gpus = find_gpus(environment, v100s)
    assert (gpus.variable, gpus.names, gpus.near) == ("", [], [])


def test_a_node_without_gpus(tmp_path: Path):
    assert find_gpus({}, str(tmp_path)).names == []
    # What a scheduler grants counts, though the driver is not to be seen.
    gpus = find_gpus({CUDA: "0,1"}, str(tmp_path))
    assert (gpus.names, gpus.near, gpus.variable) == (["0", "1"], [None, None], CUDA)
    assert find_gpus({ROCR: "0"}, str(tmp_path)).variable == ROCR
    assert find_gpus({ROCR: "0", CUDA: "0"}, str(tmp_path)).variable == CUDA


def test_numbers_of_device_files_are_slurms(v100s: str, tmp_path: Path):
    # The driver may count its files in another order than the bus.
    tree = puhti(tmp_path)
    folder = tree / "proc/driver/nvidia/gpus"
    for place, path in enumerate(sorted(folder.iterdir())):
        text = (path / "information").read_text()
        (path / "information").write_text(
            text.replace(f"Minor: \t {place}", f"Minor: \t {3 - place}")
        )
    environment = {CUDA: "0,1", "SLURM_STEP_GPUS": "0,1"}
    assert sides(find_gpus(environment, v100s)) == [0, 0]
    assert sides(find_gpus(environment, str(tree))) == [1, 1]
    assert sides(find_gpus({CUDA: "0,1"}, str(tree))) == [0, 0]


def test_each_task_may_see_its_own(v100s: str):
    # --gpus-per-task=2: Slurm 22.05 tells each task of its own, and how many the node has.
    step = {"SLURM_JOB_ID": "1", "SLURM_GPUS_ON_NODE": "4", "SLURM_JOB_GPUS": "0,1,2,3"}
    gpus = find_gpus({**step, CUDA: "2,3", "SLURM_STEP_GPUS": "2,3"}, v100s)
    assert (sides(gpus), gpus.common) == ([1, 1], False)
    assert find_gpus({**step, CUDA: "0,1,2,3", "SLURM_STEP_GPUS": "0,1,2,3"}, v100s).common
    # A step of two of the job's four.
    two = {**step, "SLURM_GPUS_ON_NODE": "2", "SLURM_STEP_GPUS": "0,1"}
    assert find_gpus({**two, CUDA: "0,1"}, v100s).common
    # A wrapper that shows each its own.
    assert not find_gpus({CUDA: "2"}, v100s).common
    assert find_gpus({CUDA: "2,3"}, v100s).common
    assert find_gpus({}, v100s).common
    gpus = find_gpus({**step, CUDA: "0", "SLURM_STEP_GPUS": "0,1,2,3"}, v100s)
    assert (gpus.near, gpus.common) == ([None], False)
    assert gpus.why_unknown == "the step has 4 GPUs, but this task sees 1"


def test_models_that_differ_are_counted_by_speed(tmp_path: Path):
    tree = str(puhti(tmp_path, models=("Tesla V100", "NVIDIA T400")))
    gpus = find_gpus({}, tree)
    assert gpus.near == [None] * 4
    assert gpus.why_unknown == (
        "the order of the GPUs is not known, because the GPU models differ and CUDA puts the "
        "fastest GPU first"
    )
    assert sides(find_gpus({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, tree)) == [0, 0, 1, 1]


@pytest.mark.parametrize("content", ["-1\n", "", None])
def test_a_machine_that_does_not_report(tmp_path: Path, content: str | None):
    tree = puhti(tmp_path)
    for path in (tree / "sys/bus/pci/devices").glob("*/numa_node"):
        path.unlink() if content is None else path.write_text(content)
    gpus = find_gpus({}, str(tree))
    assert gpus.near == [None] * 4
    assert gpus.why_unknown == "the system does not report which cores are near the GPUs"


def test_lists_of_cores_that_do_not_read(tmp_path: Path):
    tree = puhti(tmp_path)
    for path in (tree / "sys/bus/pci/devices").glob("*/local_cpulist"):
        path.write_text("rubbish\n")
    assert find_gpus({}, str(tree)).near == [None] * 4


def test_lumi(gcds: str):
    gpus = find_gpus({}, gcds)
    assert (gpus.variable, gpus.names) == (ROCR, [str(number) for number in range(8)])
    assert tuple(numa(gpus)) == LUMI_NUMA
    gpus = find_gpus({ROCR: "4,5", "SLURM_STEP_GPUS": "4,5"}, gcds)
    assert numa(gpus) == [0, 0]
    # The variable that counts is the one that is told.
    gpus = find_gpus({"HIP_VISIBLE_DEVICES": "6"}, gcds)
    assert (gpus.variable, numa(gpus)) == ("HIP_VISIBLE_DEVICES", [2])
    assert find_gpus({CUDA: "2", "HIP_VISIBLE_DEVICES": "6"}, gcds).names == ["6"]
    assert find_gpus({CUDA: "2"}, gcds).variable == CUDA
    assert find_gpus({ROCR: "1", CUDA: "2"}, gcds).names == ["1"]


def test_gcds_that_the_job_is_shut_off_from(tmp_path: Path):
    # KFD refuses to tell of them; the job's own are then counted from 0.
    tree = lumi_g(tmp_path)
    nodes = tree / "sys/class/kfd/kfd/topology/nodes"
    for number in (4, 5, 6, 7, 10, 11):
        (nodes / str(number) / "properties").unlink()
    gpus = find_gpus({ROCR: "0,1", "SLURM_STEP_GPUS": "4,5"}, str(tree))
    assert numa(gpus) == [0, 0]
    gpus = find_gpus({ROCR: "0,1"}, str(tree))
    assert numa(gpus) == [0, 0]
    assert find_gpus({}, str(tree)).names == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("0-3,8", [0, 1, 2, 3, 8]),
        (" 5\n", [5]),
        ("", []),
        ("0x0", []),
        ("0x10f", [0, 1, 2, 3, 8]),
        ("0x00fe000000000000", list(range(49, 56))),
        ("0xFF", list(range(8))),
    ],
)
def test_cores(text: str, cores: list[int]):
    assert parse_cores(text) == cores


@pytest.mark.parametrize(
    "text",
    ["a", "3-1", "1-", "-1", "1 2", "0x", "0xg", "²", "8192", "0-99999", "9" * 5000,
     "0x" + "f" * 5000, ",".join(["0-8191"] * 5000)],
    ids=lambda text: text[:12],
)  # fmt: skip
def test_cores_that_do_not_read(text: str):
    with pytest.raises(InputError) as caught:
        parse_cores(text)
    assert len(str(caught.value)) < 120


@given(st.sets(st.integers(0, 200), min_size=1))
def test_masks_and_lists_say_the_same(cores: set[int]):
    mask = hex(sum(1 << core for core in cores))
    assert parse_cores(mask) == sorted(cores)
    assert parse_cores(",".join(map(str, sorted(cores)))) == sorted(cores)


@given(
    st.dictionaries(
        st.sampled_from([CUDA, ROCR, "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_JOB_ID"]),
        st.one_of(st.text(max_size=8), st.from_regex(r"[0-9,\- GPUMIx]{0,12}", fullmatch=True)),
    )
)
def test_any_environment_is_survived(v100s: str, gcds: str, environment: dict[str, str]):
    for tree in (v100s, gcds):
        gpus = find_gpus(environment, tree)
        assert len(gpus.names) == len(gpus.near)
        assert bool(gpus.variable) == bool(gpus.names)
