"""`teho launch --dry-run`: what every rank would get, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from launch_trees import LUMI_CORES, lumi_g, puhti

from support import TEHO, check_golden
from teho.launch.binding import bind
from teho.launch.gpus import find_gpus
from teho.launch.options import Options
from teho.launch.table import print_table

DATA = Path(__file__).parents[1] / "data" / "launch"
JOB = {"SLURM_JOB_ID": "1234", "SLURM_CLUSTER_NAME": "oak", "USER": "maija", "HOME": "/users/maija"}
LUMI = {
    **JOB,
    "TEHO_CLUSTER": "lumi",
    "SLURM_JOB_NODELIST": "nid[005001-005002]",
    "SLURM_TASKS_PER_NODE": "8(x2)",
    "SLURM_NTASKS": "16",
    "SLURM_CPUS_ON_NODE": "56",
    "ROCR_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
    "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7",
}
PUHTI = {
    **JOB,
    "TEHO_CLUSTER": "puhti",
    "SLURM_JOB_NODELIST": "r01g[01-02]",
    "SLURM_TASKS_PER_NODE": "4(x2)",
    "SLURM_NTASKS": "8",
    "SLURM_CPUS_ON_NODE": "40",
    "CUDA_VISIBLE_DEVICES": "0,1,2,3",
    "SLURM_JOB_GPUS": "0,1,2,3",
    "LOCAL_SCRATCH": "/run/nvme/job_1234",
}
STEP = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
UNEVEN = {
    **JOB,
    **STEP,
    "SLURM_STEP_NODELIST": "n[1-3]",
    "SLURM_STEP_TASKS_PER_NODE": "3,1,2",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_CPUS_ON_NODE": "12",
}

Show = Callable[..., str]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Print the table as on a machine that has these cores and this tree."""

    def call(
        environment: dict[str, str], cores: frozenset[int], top: Path, *command: str, bind_to="auto"
    ) -> str:
        options = Options()
        options.bind, options.command = bind_to, command
        with monkeypatch.context() as patched:
            patched.setattr(os, "sched_getaffinity", lambda _: {*cores})
            patched.setattr("teho.launch.prepare.find_gpus", partial(find_gpus, top=str(top)))
            patched.setattr("teho.launch.prepare.bind", partial(bind, top=str(top)))
            assert print_table(options, environment, "laptop") == 0
        return capsys.readouterr().out

    return call


def test_a_full_node_of_lumi(show: Show, tmp_path: Path):
    run = ("singularity", "run", "image.sif", "python", "train.py", "--name", "it's")
    text = show(LUMI, LUMI_CORES, lumi_g(tmp_path), *run)
    check_golden(DATA / "table-lumi.txt", text)


def test_lumi_in_a_step_that_srun_has_bound(show: Show, tmp_path: Path):
    # Each rank's own mask tells that they are bound: the table is the same for all of them.
    masks = [0xFE << 8 * ccd for ccd in range(8)]
    bound = {
        **LUMI, **STEP, "SLURM_STEP_NUM_TASKS": "16", "SLURM_CPU_BIND_TYPE": "mask_cpu:",
        "SLURM_CPU_BIND_LIST": ",".join(map(hex, masks)),
    }  # fmt: skip
    by_srun = show(bound, frozenset(range(1, 8)), lumi_g(tmp_path), "true")
    unbound = show(LUMI, LUMI_CORES, tmp_path, "true")
    assert by_srun == unbound


def test_two_nodes_of_puhti(show: Show, tmp_path: Path):
    text = show(PUHTI, frozenset(range(40)), puhti(tmp_path), "python", "train.py")
    check_golden(DATA / "table-puhti.txt", text)


def test_one_torchrun_a_node(show: Show, tmp_path: Path):
    one_each = {**PUHTI, "SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NTASKS": "2"}
    text = show(one_each, frozenset(range(40)), puhti(tmp_path), "torchrun", "train.py")
    check_golden(DATA / "table-torchrun.txt", text)


def test_uneven_tasks_in_turn(show: Show, tmp_path: Path):
    check_golden(DATA / "table-uneven.txt", show(UNEVEN, frozenset(range(12)), tmp_path))


def test_a_laptop(show: Show, tmp_path: Path):
    # The port is of the process's number.
    text = show({"MASTER_PORT": "29500"}, frozenset(range(8)), tmp_path, "python", "train.py")
    check_golden(DATA / "table-laptop.txt", text)


def test_a_shared_node_is_not_bound(show: Show, tmp_path: Path):
    text = show({**UNEVEN, "SLURM_CPUS_ON_NODE": "6"}, frozenset(range(12)), tmp_path)
    assert "0–11 (shared)" in text
    assert "on this node, the job has 6 cores, but the system lets it run on 12" in text
    silent = show(UNEVEN, frozenset(range(12)), tmp_path, bind_to="none")
    assert "Note" not in silent


def test_ranks_without_a_reported_number_are_counted(show: Show, tmp_path: Path):
    mpi = {
        "OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "8", "MASTER_ADDR": "n1",
        "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    }  # fmt: skip
    text = show(mpi, frozenset(range(8)), tmp_path)
    assert text.startswith("8 ranks, started by Open MPI\n")
    assert "\n… and 7 more\n" in text


def test_thousands_of_ranks_are_not_all_shown(show: Show, tmp_path: Path):
    many = {**JOB, "SLURM_JOB_NODELIST": "n[0001-2978]", "SLURM_TASKS_PER_NODE": "8(x2978)"}
    text = show(many, frozenset(range(8)), tmp_path)
    assert text.startswith("23824 ranks on 2978 nodes, started by Slurm\n")
    assert "\n… and 23568 more\n" in text
    assert len(text) < 30_000


def test_only_rank_0_prints(show: Show, tmp_path: Path):
    other = {**UNEVEN, "SLURM_PROCID": "1", "SLURM_NODEID": "1"}
    assert show(other, frozenset(range(12)), tmp_path) == ""


def test_nothing_is_started_or_made(teho, tmp_path: Path):
    made = tmp_path / "made"
    environment = {"CUDA_VISIBLE_DEVICES": "0", "TMPDIR": str(tmp_path), "USER": "maija"}
    result = teho("launch", "--dry-run", "--", "touch", made, env=environment)
    assert result.returncode == 0, result.stderr
    assert f"TRITON_CACHE_DIR={tmp_path}/teho-cache-maija/triton" in result.stdout
    assert f"Command of each rank: touch {made}" in result.stdout
    assert [path.name for path in tmp_path.iterdir() if "maija" in path.name] == []
    assert not made.exists()


def test_a_terminal_of_ascii_and_a_closed_pipe(teho):
    result = teho("launch", "--dry-run", env={"PYTHONIOENCODING": "ascii"})
    assert (result.returncode, result.stderr) == (0, "")
    assert "Rank  Node" in result.stdout
    import subprocess

    piped = subprocess.run(
        ["bash", "-c", f"{' '.join(TEHO)} launch --dry-run | head -1"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert (piped.stdout, piped.stderr) == ("1 rank on 1 node\n", "")


def test_a_mistake_is_one_line(teho):
    result = teho("launch", "--dry-run", env={**UNEVEN, "SLURM_PROCID": "9"})
    assert result.returncode == 2
    assert "rank 9 of 6" in result.stderr
    assert len(result.stderr.splitlines()) == 1
