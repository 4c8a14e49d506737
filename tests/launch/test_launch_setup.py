"""What `teho launch` sets up, from end to end: ranks, ports, caches and cores; and mistakes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from launch_process import HOST, STEP, TELL, launch, line, told
from launch_trees import lumi

from support import SOAK, TEHO


@pytest.mark.parametrize(
    ("words", "environment", "parts"),
    [
        ((), {"SLURM_PROCID": "2"}, ["rank 2 on", "rank 2 of 2"]),
        ((), {"SLURM_STEP_NODELIST": "n[1"}, ["rank 0 on", "brackets"]),
        ((), {"MASTER_PORT": "none"}, ["rank 0 on", "MASTER_PORT is 'none'", "1 to 65533"]),
        ((), {"MASTER_PORT": "65534"}, ["rank 0 on", "MASTER_PORT is '65534'"]),
        ((), {"MASTER_PORT": "0"}, ["MASTER_PORT is '0'"]),
        ((), {"MASTER_PORT": "²"}, ["MASTER_PORT is '²'"]),
        ((), {"MASTER_PORT": "9" * 5000}, ["MASTER_PORT is '999"]),
        ((), {"MASTER_ADDR": 'n1"'}, ["rank 0 on", "MASTER_ADDR is 'n1\"'"]),
        ((), {"MASTER_ADDR": "n1\nn2"}, ["MASTER_ADDR is 'n1\\nn2'"]),
        (("--bind", "/nonexistent"), {"SLURM_PROCID": "1", "SLURM_LOCALID": "1"},
         ["rank 1 on", "--bind /nonexistent: No such file"]),
        (("--generation", "x"), {}, ["rank 0 on", "--generation x: Teho does not know this site"]),
        ((), {"TEHO_SITE": "x"}, ["rank 0 on", "TEHO_SITE cannot be read"]),
    ],
)  # fmt: skip
def test_a_mistake_names_rank_and_host(words, environment, parts):
    text = line(launch(*words, "--", "true", env={**STEP, **environment}), 2)
    assert [part for part in [f" on {HOST}: ", *parts] if part not in text] == []


def test_the_node_of_rank_0_is_not_reported():
    pmi = {"PMI_RANK": "3", "PMI_SIZE": "4", "PMI_LOCAL_RANK": "1", "PMI_LOCAL_SIZE": "2"}
    text = line(launch("--", "true", env=pmi), 2)
    assert f"rank 3 on {HOST}: PMI does not report its nodes" in text
    assert "mpirun -x MASTER_ADDR" in text
    assert told(env={**pmi, "MASTER_ADDR": "n1"})["env"]["MASTER_ADDR"] == "n1"


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        environment = {**STEP, "MASTER_PORT": port}
        text = line(launch("--", "true", env=environment), 2)
        assert f"rank 0 on {HOST}: port {port} is in use by another program" in text
        assert "MASTER_PORT=NUMBER" in text
        # The other ranks come to it; and one rank alone meets nobody.
        other = {**environment, "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}
        assert launch("--", "true", env=other).returncode == 0
        assert launch("--", "true", env={"MASTER_PORT": port}).returncode == 0
        # torchrun's own agent listens there for the tasks that it has started.
        by_torchrun = {
            "TORCHELASTIC_RUN_ID": "x", "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "0", "MASTER_ADDR": HOST, "MASTER_PORT": port,
        }  # fmt: skip
        assert launch("--", "true", env=by_torchrun).returncode == 0
        # A torchrun that is started is to listen there itself.
        shell = ["sh", "-c", "exit 0", "torchrun"]
        assert "in use" in line(launch("--", *shell, env={"MASTER_PORT": port}), 2)


def test_a_port_that_was_in_use_a_moment_ago_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # this end waits in TIME_WAIT
            client.recv(1)
    result = launch("--", "true", env={**STEP, "MASTER_PORT": str(port)})
    assert result.returncode == 0, result.stderr


def test_the_users_own_variables():
    found = told("--env", "A=b=c", "--env", "RANK=7", "--env=EMPTY=", env={"OMP_NUM_THREADS": "3"})
    assert {"A": "b=c", "RANK": "7", "EMPTY": ""}.items() <= found["env"].items()
    assert found["env"]["OMP_NUM_THREADS"] == found["env"]["MKL_NUM_THREADS"] == "3"


@pytest.mark.parametrize(
    ("options", "visible", "jax"), [((), "4,5", "1"), (("--gpus", "own"), "5", "0")]
)
def test_gpus_that_a_rank_sees(tmp_path: Path, options: tuple[str, ...], visible: str, jax: str):
    environment = {
        **STEP, "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "CUDA_VISIBLE_DEVICES": "4,5",
        "TMPDIR": str(tmp_path),
    }  # fmt: skip
    found = told(*options, env=environment)["env"]
    assert found["CUDA_VISIBLE_DEVICES"] == visible
    assert found["JAX_LOCAL_DEVICE_IDS"] == jax


def test_caches_are_on_the_nodes_own_disk(tmp_path: Path):
    environment = {"CUDA_VISIBLE_DEVICES": "0", "TMPDIR": str(tmp_path), "USER": "maija"}
    found = told(env=environment)["env"]
    root = tmp_path / "teho-cache-maija"
    assert found["TRITON_CACHE_DIR"] == f"{root}/triton"
    assert (root / "triton").is_dir()
    # Where they cannot be, all is as it was, and rank 0 says so.
    shutil.rmtree(root)
    root.write_text("not mine")
    result = launch("--", *TELL, env=environment)
    why = "the path is not a folder"
    assert result.stderr.decode() == f"teho: {root} cannot be used for caches: {why}\n"
    assert "TRITON_CACHE_DIR" not in json.loads(result.stdout)["env"]
    quiet = launch("-q", "--env", "TRITON_CACHE_DIR=/mine", "--", *TELL, env=environment)
    assert quiet.stderr == b""
    assert json.loads(quiet.stdout)["env"]["TRITON_CACHE_DIR"] == "/mine"


def test_a_container_gets_what_it_needs(tmp_path: Path):
    fake = tmp_path / "apptainer"
    fake.write_text("#!/bin/sh\nenv\n")
    fake.chmod(0o755)
    environment = {
        **STEP, "TEHO_CLUSTER": "puhti", "CUDA_VISIBLE_DEVICES": "0,1", "USER": "maija",
        "LOCAL_SCRATCH": str(tmp_path), "SINGULARITY_BIND": "/pfs",
    }  # fmt: skip
    result = launch("--", str(fake), "exec", "--cleanenv", "x.sif", "python", env=environment)
    found = dict(pair.split("=", 1) for pair in result.stdout.decode().splitlines())
    root = f"{tmp_path}/teho-cache-maija"
    assert found["APPTAINERENV_RANK"] == found["SINGULARITYENV_RANK"] == "0"
    assert found["APPTAINERENV_TRITON_CACHE_DIR"] == f"{root}/triton"
    if not str(tmp_path).startswith("/tmp/"):
        assert found["APPTAINER_BIND"].startswith(f"/pfs,{root},")


def test_a_task_of_a_batch_script_shows_how_to_start_all():
    job = {"SLURM_JOB_ID": "1234", "SLURM_NTASKS": "8", "SLURM_PROCID": "0"}
    text = line(launch("--", "true", env=job), 0)
    assert "only one task runs, but the job has 8 tasks: write `srun teho launch -- …`" in text
    assert launch("--quiet", "--", "true", env=job).stderr == b""


def test_a_torchrun_for_each_gpu_is_one_too_many():
    text = line(launch("--", "sh", "-c", "exit 0", "torchrun", env={**STEP, **UNBOUND}), 0)
    assert "2 tasks of this node start a torchrun each" in text


# As many cores as there are, so that nothing is said of binding.
UNBOUND = {"SLURM_CPUS_ON_NODE": str(len(os.sched_getaffinity(0)))}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core cannot be shared out")
def test_tasks_are_bound_to_cores_of_their_own():
    shares = []
    for rank in ("0", "1"):
        environment = {**STEP, **UNBOUND, "SLURM_PROCID": rank, "SLURM_LOCALID": rank}
        shares.append({*told(env=environment)["cores"]})
    assert not shares[0] & shares[1]
    assert shares[0] | shares[1] <= os.sched_getaffinity(0)
    environment = {**STEP, **UNBOUND}
    assert {*told("--bind", "none", env=environment)["cores"]} == os.sched_getaffinity(0)


def site_with(cores: list[list[int]]) -> str:
    own = {"name": "oak", "cores_of_gpu": cores, "reserved_cores": [], "scratch": ""}
    return json.dumps({**lumi(), **own})


@pytest.mark.parametrize("more", [True, False])
def test_a_system_that_refuses(tmp_path: Path, more: bool):
    # The masks name cores that the kernel does not have; with one that it has, it grants that.
    mine = sorted(os.sched_getaffinity(0))
    strange = [4000, *mine[:1]] if more else [4000, 4001]
    masks = [sum(1 << core for core in cores) for cores in (mine, range(3998, 3998 + len(mine)))]
    listed = ",".join(map(hex, masks))
    environment = {
        **STEP, "SLURM_CPU_BIND_TYPE": "mask_cpu:", "SLURM_CPU_BIND_LIST": listed,
        "TEHO_SITE": site_with([strange, [mine[-1]]]), "ROCR_VISIBLE_DEVICES": "0,1",
    }  # fmt: skip
    if masks[0].bit_count() < 2 and more:
        pytest.skip("one core cannot be granted in part")
    result = launch("--", *TELL, env={**environment, "USER": "maija", "TMPDIR": str(tmp_path)})
    assert json.loads(result.stdout)["cores"] == mine
    text = result.stderr.decode()
    assert "the cores of rank 0 are not changed: the system " in text


@pytest.mark.soak
def test_many_ranks_together(tmp_path: Path):
    nodes = 32 if SOAK else 8  # with eight ranks each
    count = 8 * nodes
    step = {
        **STEP, "SLURM_STEP_NODELIST": f"n[001-{nodes:03}]", "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_STEP_TASKS_PER_NODE": f"8(x{nodes})", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
        "TMPDIR": str(tmp_path), "USER": "maija", "HOME": str(tmp_path),
    }  # fmt: skip
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "pip").mkdir()
    words = ["sh", "-c", 'echo "$RANK $LOCAL_RANK $NODE_RANK $MASTER_ADDR $MASTER_PORT"']
    ranks = []
    for rank in range(count):
        node, local = divmod(rank, 8)
        own = {"SLURM_PROCID": rank, "SLURM_LOCALID": local, "SLURM_NODEID": node}
        environment = {**os.environ, **step, **{name: str(value) for name, value in own.items()}}
        ranks.append(
            subprocess.Popen(
                [*TEHO, "launch", "--", *words], env=environment,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    said = [process.communicate(timeout=120) for process in ranks]
    assert {process.returncode for process in ranks} == {0}
    lines = [out.split() for out, _ in said]
    assert [(int(line[0]), int(line[1]), int(line[2])) for line in lines] == [
        (rank, rank % 8, rank // 8) for rank in range(count)
    ]
    assert len({(line[3], line[4]) for line in lines}) == 1
    assert lines[0][3] == "n001"
    # All of them made the same folders at once.
    assert {error for _, error in said[1:]} == {""}
    xdg = tmp_path / "teho-cache-maija" / "xdg"
    assert [path.name for path in xdg.iterdir()] == ["pip"]
