"""Launchers without a scheduler: nothing at all, mpirun on one machine, JAX, and contracts.

TensorFlow and Horovod are not run: their variables are held against what TensorFlow documents
and what Horovod's own sources read.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator

import pytest
from launched import PROGRAMS, Launched, Stage, jax_gradient

from support import FRAMEWORKS, lacks_framework
from teho.launch.variables import rank_variables
from teho.schedulers.task import Task, read_task

_OF_A_RANK = ("_RANK", "_SIZE")


def test_a_single_program_gets_the_rank_of_one(alone: Launched) -> None:
    alone.check_ranks(1, 1)
    alone.check_golden("alone")


def test_mpirun_on_one_machine(stage: Stage, alone: Launched) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("no mpirun here; tests/debian-packages.sh installs it")
    notes = stage.notes("mpirun-here")
    command = ("teho", "launch", "--", "python", "ddp.py", str(notes))
    done = stage.run("mpirun", "--oversubscribe", "-np", "2", *command)
    launched = Launched(stage, "mpirun-here", done.stdout + done.stderr)
    assert done.returncode == 0, launched.said
    launched.check_gradients(2, alone.gradients[0])
    launched.check_ranks(1, 2)
    launched.check_golden("mpirun-here")


def test_jax_meets_at_the_given_address(stage: Stage) -> None:
    if reason := lacks_framework("jax"):
        pytest.skip(reason)
    notes = stage.notes("jax")
    ranks = [
        subprocess.Popen(
            ["teho", "launch", "--", "python", "with_jax.py", str(notes), "told"],
            env={**stage.environment, "RANK": str(rank), "WORLD_SIZE": "2"},
            cwd=PROGRAMS,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    Launched(stage, "jax", "\n".join(said)).check_gradients(2, jax_gradient())


def _task(rank: int) -> Task:
    """Return a rank of a step of Slurm's with four tasks on one node, and two on the other."""
    environment = {
        "SLURM_JOB_ID": "4321",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "r01g[01-02]",
        "SLURM_STEP_TASKS_PER_NODE": "4,2",
        "SLURM_STEP_NUM_TASKS": "6",
        "SLURM_DISTRIBUTION": "block",
        "SLURM_PROCID": str(rank),
        "SLURM_NODEID": str(rank // 4),
        "SLURM_LOCALID": str(rank % 4),
    }
    return read_task(environment, f"r01g0{1 + rank // 4}")


def test_tf_config_is_as_tensorflow_documents_it() -> None:
    """A cluster of workers, each with a place of its own, and which of them this is."""
    configs = [
        json.loads(rank_variables(_task(rank), "r01g01", "14000")["TF_CONFIG"]) for rank in range(6)
    ]
    for rank, config in enumerate(configs):
        assert config["cluster"] == configs[0]["cluster"]
        assert config["task"] == {"type": "worker", "index": rank}
    (workers,) = configs[0]["cluster"].values()
    assert list(configs[0]["cluster"]) == ["worker"]
    places = [worker.partition(":") for worker in workers]
    assert [host for host, _, _ in places] == ["r01g01"] * 4 + ["r01g02"] * 2
    assert len(set(workers)) == 6
    assert "r01g01:14000" not in workers  # the port where PyTorch and JAX meet
    assert all(1024 < int(port) < 65536 for _, _, port in places)


@pytest.fixture(scope="module")
def horovod() -> Iterator[Callable[[str], str]]:
    """Return what reads a file of Horovod's sources."""
    path = next(FRAMEWORKS.glob("sources/horovod-*.tar.gz"), None)
    if path is None:
        pytest.skip("no sources of Horovod in .frameworks; tests/frameworks.sh fetches them")
    with tarfile.open(path) as archive:
        top = archive.getnames()[0].partition("/")[0]

        def read(name: str) -> str:
            file = archive.extractfile(f"{top}/horovod/{name}")
            assert file is not None
            return file.read().decode()

        yield read


def _horovodrun(horovod: Callable[[str], str]) -> list[dict[str, str]]:
    """Return what Horovod's launcher sets for the ranks of `-H r01g01:4,r01g02:2`."""
    names: dict = {"__name__": __name__}
    exec(horovod("runner/common/util/hosts.py"), names)
    launcher = ast.parse(horovod("runner/gloo_run.py"))
    wanted = {"create_slot_env_vars", "create_run_env_vars"}
    launcher.body = [one for one in launcher.body if getattr(one, "name", "") in wanted]
    exec(compile(launcher, "gloo_run.py", "exec"), names)
    slots = names["get_host_assignments"](names["parse_hosts"]("r01g01:4,r01g02:2"), 6)
    alike = names["create_run_env_vars"]("10.0.0.1", ["ib0"], 41234)
    return [
        {name: str(value) for name, value in {**alike, **names["create_slot_env_vars"](s)}.items()}
        for s in slots
    ]


def test_horovod_gets_what_its_own_launcher_sets(horovod: Callable[[str], str]) -> None:
    for rank, theirs in enumerate(_horovodrun(horovod)):
        ours = rank_variables(_task(rank), "r01g01", "14000")
        numbers = {name: value for name, value in theirs.items() if name.endswith(_OF_A_RANK)}
        assert len(numbers) == 6
        assert numbers == {name: ours[name] for name in numbers}


def test_horovodruns_own_tasks_are_known(horovod: Callable[[str], str]) -> None:
    around = {"SLURM_JOB_ID": "4321", "SLURM_JOB_NODELIST": "r01g[01-02]"}
    tasks = [
        read_task({**around, **theirs}, f"r01g0{1 + rank // 4}")
        for rank, theirs in enumerate(_horovodrun(horovod))
    ]
    assert {task.started_by for task in tasks} == {"horovodrun"}
    assert [task.rank for task in tasks] == list(range(6))
    assert [task.local_rank for task in tasks] == [0, 1, 2, 3, 0, 1]
    assert {(task.size, task.key, task.port) for task in tasks} == {
        (6, tasks[0].key, tasks[0].port)
    }


def test_horovod_reads_these_names(horovod: Callable[[str], str]) -> None:
    source = horovod("common/gloo/gloo_context.cc")
    read = set(re.findall(r"GetIntEnvOrDefault\((HOROVOD_\w+)", source))
    ranks = {name for name in read if name.endswith(_OF_A_RANK)}
    assert len(ranks) == 6
    assert ranks <= set(rank_variables(_task(0), "r01g01", "14000"))
