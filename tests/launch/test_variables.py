"""The environment of a task: what each framework reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_trees import task

from teho.launch.gpus import Gpus
from teho.launch.variables import (
    find_launcher,
    inner_processes,
    jax_devices,
    meeting_place,
    rank_variables,
    starts_torchrun,
    thread_variables,
    torchrun_variables,
)
from teho.schedulers.task import Task, rank_places

NONE = Gpus("", [], [])
FOUR = Gpus("CUDA_VISIBLE_DEVICES", ["0", "1", "2", "3"], [None] * 4)


def of_step(rank: int = 5, counts: tuple[int, ...] = (4, 4), distribution: str = "block") -> Task:
    found = Task(
        started_by="Slurm",
        rank=rank,
        size=sum(counts),
        hosts=tuple(f"n{number}" for number in range(1, len(counts) + 1)),
        tasks_per_node=counts,
        first_host="n1",
        distribution=distribution,
        port=14242,
    )
    blocks = [(node, local) for node, count in enumerate(counts) for local in range(count)]
    turns = sorted(blocks, key=lambda place: place[1])
    found.node_rank, found.local_rank = (turns if distribution == "cyclic" else blocks)[rank]
    found.local_size = counts[found.node_rank]
    return found


def test_where_the_ranks_meet():
    assert meeting_place(of_step(), {}) == ("n1", "14242")
    assert meeting_place(task(3), {}) == ("127.0.0.1", "10000")
    told = {"MASTER_ADDR": "n7", "MASTER_PORT": "29500"}
    assert meeting_place(of_step(), told) == ("n7", "29500")
    assert meeting_place(of_step(), {"MASTER_ADDR": "", "MASTER_PORT": ""}) == ("n1", "14242")
    nobody_tells = Task(started_by="PMI", rank=1, size=4, local_size=2)
    assert meeting_place(nobody_tells, {})[0] == ""


def test_the_numbers_of_a_rank():
    found = rank_variables(of_step(), "n1", "14242")
    config = json.loads(found.pop("TF_CONFIG"))
    assert found == {
        "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4",
        "NODE_RANK": "1", "GROUP_RANK": "1", "MASTER_ADDR": "n1", "MASTER_PORT": "14242",
        "LOCAL_SIZE": "4", "CROSS_RANK": "1", "CROSS_SIZE": "2",
        "HOROVOD_RANK": "5", "HOROVOD_SIZE": "8", "HOROVOD_LOCAL_RANK": "1",
        "HOROVOD_LOCAL_SIZE": "4", "HOROVOD_CROSS_RANK": "1", "HOROVOD_CROSS_SIZE": "2",
        "JAX_COORDINATOR_ADDRESS": "n1:14242", "JAX_NUM_PROCESSES": "8", "JAX_PROCESS_ID": "5",
    }  # fmt: skip
    assert config == {
        "cluster": {
            "worker": [f"n{node}:{port}" for node in (1, 2) for port in range(14243, 14247)]
        },
        "task": {"type": "worker", "index": 5},
    }


def test_across_uneven_nodes_horovod_counts_those_that_have_the_local_rank():
    # Three nodes with 3, 1 and 2 tasks: local rank 1 is on the first and on the third.
    found = rank_variables(of_step(5, (3, 1, 2)), "n1", "14242")
    assert (found["LOCAL_RANK"], found["NODE_RANK"]) == ("1", "2")
    assert (found["HOROVOD_CROSS_RANK"], found["HOROVOD_CROSS_SIZE"]) == ("1", "2")
    assert (found["CROSS_RANK"], found["CROSS_SIZE"]) == ("2", "3")


@given(
    st.lists(st.integers(1, 5), min_size=2, max_size=5),
    st.sampled_from(["block", "cyclic"]),
    st.data(),
)
def test_tensorflow_finds_each_worker_where_it_runs(counts, distribution, data):
    ranks = range(sum(counts))
    steps = [of_step(rank, tuple(counts), distribution) for rank in ranks]
    configs = [json.loads(rank_variables(step, "n1", "14242")["TF_CONFIG"]) for step in steps]
    assert all(config["cluster"] == configs[0]["cluster"] for config in configs)
    workers = configs[0]["cluster"]["worker"]
    assert len({*workers}) == len(workers) == len(ranks)
    rank = data.draw(st.sampled_from(ranks))
    assert configs[rank]["task"] == {"type": "worker", "index": rank}
    step = steps[rank]
    assert workers[rank] == f"n{step.node_rank + 1}:{14243 + step.local_rank}"


@pytest.mark.parametrize(
    "step",
    [
        of_step(0, (1,)),
        of_step(distribution="plane"),
        Task(started_by="PMI", rank=1, size=4, local_size=2),
        # More than Linux lets one variable hold.
        of_step(0, (4,) * 2500),
        of_step(0, (500,) * 200),
    ],
)
def test_layouts_that_tensorflow_cannot_use(step: Task):
    assert "TF_CONFIG" not in rank_variables(step, "n1", "14242")


def test_the_longest_list_for_tensorflow():
    found = rank_variables(of_step(0, (4,) * 1500), "n1", "14242")["TF_CONFIG"]
    assert 60_000 < len(found) < 100_000
    assert len(rank_places(of_step(0, (4,) * 1500))) == 6000


@pytest.mark.parametrize(
    ("environment", "set_to"),
    [
        ({}, "7"),
        ({"OMP_NUM_THREADS": "3"}, "3"),
        ({"OMP_NUM_THREADS": ""}, "7"),
        # Nested loops, and words that are no number, are OpenMP's own to read.
        ({"OMP_NUM_THREADS": "4,2"}, "4"),
        ({"OMP_NUM_THREADS": "$SLURM_CPUS_PER_TASK"}, "7"),
        ({"OMP_NUM_THREADS": "²"}, "7"),
    ],
)
def test_threads(environment: dict[str, str], set_to: str):
    found = thread_variables(7, {**environment, "MKL_NUM_THREADS": "9"})
    assert "MKL_NUM_THREADS" not in found
    assert ("OMP_NUM_THREADS" in found) == (not environment.get("OMP_NUM_THREADS"))
    names = {
        "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "PJRT_NPROC", "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    }  # fmt: skip
    assert {*found} - {"OMP_NUM_THREADS"} == names
    assert {*found.values()} == {set_to}


@pytest.mark.parametrize(
    ("command", "launcher"),
    [
        ("torchrun train.py", "torchrun"),
        ("/opt/env/bin/torchrun --nproc-per-node=4 train.py", "torchrun"),
        ("python -m torch.distributed.run train.py", "torchrun"),
        ("singularity run $SIF torchrun train.py", "torchrun"),
        ("accelerate launch train.py", "accelerate"),
        ("deepspeed train.py --deepspeed", "deepspeed"),
        ("python train.py", ""),
        # Words after the script belong to the script.
        ("python train.py --name torchrun", ""),
        ("python /a/train.py torchrun", ""),
        ("", ""),
    ],
)
def test_launchers_in_a_command(command: str, launcher: str):
    found = find_launcher(command.split())[0]
    assert (found["name"] if found else "") == launcher
    assert find_launcher(["bash", "-c", command])[0] == found
    assert starts_torchrun(command.split()) == (launcher == "torchrun")


@pytest.mark.parametrize(
    ("command", "gpus", "count"),
    [
        ("python train.py", FOUR, 1),
        ("torchrun train.py", FOUR, 4),
        ("torchrun train.py", NONE, 1),
        ("torchrun --nproc-per-node=2 train.py", FOUR, 2),
        ("torchrun --nproc_per_node 2 train.py", FOUR, 2),
        ("torchrun --nproc_per_node gpu train.py", FOUR, 4),
        ("torchrun --nproc_per_node", FOUR, 4),
        ("torchrun --nproc_per_node 0 train.py", FOUR, 1),
        ("accelerate launch --num_processes 6 train.py", NONE, 3),
        ("accelerate launch --num_processes=6 train.py", NONE, 3),
        ("accelerate launch train.py", FOUR, 4),
        ("deepspeed --num_gpus 2 train.py", FOUR, 2),
    ],
)
def test_processes_of_a_launcher(command: str, gpus: Gpus, count: int):
    # One task on each of two nodes.
    step = of_step(1, (1, 1))
    assert inner_processes(command.split(), gpus, step, {}) == count


def test_torchrun_gets_the_values_of_its_options():
    step = of_step(1, (1, 1))
    step.key = "slurm-oak-1234.0"
    found = torchrun_variables(step, FOUR, "n1", "14242", {})
    assert found == {
        "PET_NNODES": "2",
        "PET_NODE_RANK": "1",
        "PET_NPROC_PER_NODE": "4",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "n1:14242",
        "PET_RDZV_ID": "slurm-oak-1234.0",
    }
    assert "PET_NPROC_PER_NODE" not in torchrun_variables(step, NONE, "n1", "14242", {})
    told = {"PET_NPROC_PER_NODE": "2"}
    assert "PET_NPROC_PER_NODE" not in torchrun_variables(step, FOUR, "n1", "14242", told)
    assert inner_processes(["torchrun", "train.py"], FOUR, step, told) == 2
    alone = Task(started_by="")
    assert torchrun_variables(alone, NONE, "127.0.0.1", "14242", {})["PET_RDZV_ID"] == "teho"


@pytest.mark.parametrize(
    ("local_rank", "local_size", "seen", "own"),
    [
        (2, 4, 4, "2"), (2, 4, 1, "0"), (0, 1, 4, "0,1,2,3"), (1, 2, 4, "2,3"), (5, 8, 4, "1"),
    ],
)  # fmt: skip
def test_which_gpus_jax_takes(local_rank: int, local_size: int, seen: int, own: str):
    assert jax_devices(task(local_rank, local_size), seen) == own
