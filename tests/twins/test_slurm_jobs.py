"""Real jobs: every launcher's script runs to its end on the twins, with the right ranks.

The launchers and the program are stubs that write down how they were called. On each cluster of
the draw, for each launcher: one GPU, all GPUs of a node, and those of two nodes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest
from slurm_stubs import Call, calls_of, write_stubs
from slurm_twin import SlurmTwin, several

from drawn import cases_that_run
from support import TEHO
from teho.clusters.catalogue import load_cluster
from teho.launch.binding import physical_cores
from teho.model.cluster import Cluster
from teho.model.plan import Option
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script

CLUSTERS = ("puhti", "mahti", "lumi", "narval")
GPUS = {"puhti": 4, "mahti": 4, "lumi": 8, "narval": 4}
LAUNCHERS: tuple[str, ...] = (
    "plain",
    "launch",
    "torchrun",
    "srun",
    "accelerate",
    "deepspeed",
    "horovod",
)
SHAPES = ("one GPU", "one node", "two nodes")
ALONE = {
    # No GPU, and a part of one: one process each, on nodes of their own kinds.
    ("puhti", "no GPU"): {"gpus": 0, "cpus": 4, "memory_mib": 8192},
    ("narval", "no GPU"): {"gpus": 0, "cpus": 4, "memory_mib": 8192},
    ("mahti", "slice"): {"gpus": 1, "gpu_type": "a100_1g.5gb"},
    ("narval", "slice"): {"gpus": 1, "gpu_type": "a100_3g.20gb"},
}
DRAWN = pytest.mark.drawn(2, by="name")
COMMAND = ("python", "train.py", "--words", "two words", "it's $HOME")
PROGRAM = COMMAND[1:]


class Ran(msgspec.Struct):
    """A job that has ended."""

    option: Option
    state: str
    said: str
    calls: list[Call]

    @property
    def ranks(self) -> int:
        return self.option.nodes * self.option.gpus_per_node


@pytest.fixture(scope="module")
def jobs(
    request: pytest.FixtureRequest, slurm: None, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str, str], Ran]:
    """Run all jobs of the drawn clusters, as many at a time as the nodes hold."""
    names = [str(name) for name in cases_that_run(request, "name")]
    clusters = [load_cluster(name, {}) for name in names]
    requests = {
        (one.name, launcher, shape): _request(one, launcher, shape)
        for one in clusters
        for launcher in LAUNCHERS
        for shape in SHAPES
    }
    for (name, shape), needs in ALONE.items():
        if name not in names:
            continue
        account = load_cluster(name, {}).account.example
        requests[name, "plain", shape] = Request(
            command=COMMAND,
            account=account,
            time_s=600.0,
            **needs,  # type: ignore[arg-type]
        )
    options = {
        key: answer(
            request, [one for one in clusters if one.name == key[0]], even_if_retired=True
        ).options[0]
        for key, request in requests.items()
    }
    live = {option.node_kind: 2 for option in options.values()}
    folders = {name: tmp_path_factory.mktemp(name) for name in names}
    with several(clusters, live, asleep=False) as twins:
        numbers = {
            key: (_submit(twins[key[0]], folders[key[0]], option), option)
            for key, option in options.items()
        }
        states = {
            name: _states_at_the_end(twin, {n for key, (n, _) in numbers.items() if key[0] == name})
            for name, twin in twins.items()
        }
    return {
        key: Ran(
            option,
            states[key[0]].get(number, "not in sacct"),
            (folders[key[0]] / f"{number}.out").read_text(),
            calls_of(folders[key[0]], number),
        )
        for key, (number, option) in numbers.items()
    }


def _request(cluster: Cluster, launcher: str, shape: str) -> Request:
    whole = GPUS[cluster.name]
    return Request(
        command=COMMAND,
        gpus={"one GPU": 1, "one node": whole, "two nodes": 2 * whole}[shape],
        nodes=2 if shape == "two nodes" else 1,
        launcher=launcher,
        account=cluster.account.example,
        time_s=600.0,
    )


def _submit(twin: SlurmTwin, folder: Path, option: Option) -> str:
    # If the site documents no module with Horovod, the job brings its own.
    bare = option.request.launcher == "horovod" and not any(
        entry.horovod for entry in twin.cluster.software
    )
    options = ScriptOptions(teho=tuple(TEHO), framework="none" if bare else "")
    script = write_script(option, twin.cluster, options).text
    if not (folder / "bin").exists():
        twin.environment.update(write_stubs(folder))
    sent = twin.run("sbatch", "--parsable", f"--output={folder}/%j.out", stdin=script)
    assert sent.returncode == 0, f"{sent.stderr}\n{script}"
    return sent.stdout.strip()


def _states_at_the_end(twin: SlurmTwin, numbers: set[str]) -> dict[str, str]:
    """Wait until the queue is empty, and return the state of each job in the accounting."""
    end_s = time.monotonic() + 240
    while twin.run("squeue", "-h").stdout.strip() and time.monotonic() < end_s:
        time.sleep(0.3)
    # The accounting learns of a job, and of its end, some time after the queue.
    while True:
        lines = twin.run("sacct", "-X", "-n", "-P", "-o", "jobid,state,exitcode").stdout.split()
        found = dict(line.split("|", 1) for line in lines)
        going = [state for state in found.values() if state.startswith(("RUNNING", "PENDING"))]
        if (numbers <= set(found) and not going) or time.monotonic() > end_s:
            return found
        time.sleep(0.3)


@DRAWN
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_job_runs_with_the_right_ranks(
    name: str, launcher: str, shape: str, jobs: dict[tuple[str, str, str], Ran]
) -> None:
    job = jobs[name, launcher, shape]
    assert job.state == "COMPLETED|0:0", job.said
    assert job.option.nodes == (2 if shape == "two nodes" else 1)
    assert job.ranks == {"one GPU": 1, "one node": GPUS[name], "two nodes": 2 * GPUS[name]}[shape]
    _CHECKS[launcher](job)
    for call in job.calls:
        seen = call.env["CUDA_VISIBLE_DEVICES"].split(",")
        assert len(seen) == job.option.gpus_per_node
        assert int(call.env["OMP_NUM_THREADS"]) == _threads(job, call)


@DRAWN
@pytest.mark.parametrize(("name", "shape"), ALONE)
def test_job_without_a_whole_gpu_runs(
    name: str, shape: str, jobs: dict[tuple[str, str, str], Ran]
) -> None:
    job = jobs[name, "plain", shape]
    assert job.state == "COMPLETED|0:0", job.said
    (call,) = job.calls
    assert call.argv == COMMAND
    assert int(call.env["OMP_NUM_THREADS"]) == job.option.cpus_per_task
    seen = [one for one in call.env.get("CUDA_VISIBLE_DEVICES", "").split(",") if one]
    assert len(seen) == (1 if shape == "slice" else 0)


def _threads(job: Ran, call: Call) -> int:
    """Return the cores of each process: a launcher on each node shares them out."""
    if job.option.request.launcher == "launch":
        # It counts the cores that are really there, and those of the twin are not. One that
        # the cluster keeps for its system is never a job's.
        nodes = load_cluster(job.option.cluster, {}).nodes
        kind = next(kind for kind in nodes if kind.name == job.option.node_kind)
        mine = frozenset(os.sched_getaffinity(0)) - {*kind.reserved_cores}
        real = len(physical_cores(mine))
        return max(1, min(job.option.cpus_per_task, real // job.option.tasks_per_node))
    own = call.argv[0] in {"torchrun", "accelerate", "deepspeed"}
    return job.option.cpus_per_task // (job.option.gpus_per_node if own else 1)


def _check_plain(job: Ran) -> None:
    assert [call.argv for call in job.calls] == [COMMAND]


def _check_tasks(job: Ran) -> None:
    """One task a GPU, numbered through, on every node from 0 on."""
    assert [call.argv for call in job.calls] == [COMMAND] * job.ranks
    assert sorted(int(call.env["SLURM_PROCID"]) for call in job.calls) == list(range(job.ranks))
    places = {(call.node, int(call.env["SLURM_LOCALID"])) for call in job.calls}
    assert len({node for node, _ in places}) == job.option.nodes
    assert {local for _, local in places} == set(range(job.option.gpus_per_node))
    assert len(places) == job.ranks


def _check_ranks(job: Ran) -> None:
    _check_tasks(job)
    for call in job.calls:
        env = call.env
        assert env["RANK"] == env["SLURM_PROCID"]
        assert env["LOCAL_RANK"] == env["SLURM_LOCALID"]
        assert env["WORLD_SIZE"] == str(job.ranks)


def _check_srun(job: Ran) -> None:
    _check_ranks(job)
    if job.ranks > 1:
        _check_meeting(job, {call.env["MASTER_ADDR"] for call in job.calls})
        assert len({call.env["MASTER_PORT"] for call in job.calls}) == 1


def _check_launch(job: Ran) -> None:
    _check_ranks(job)
    addresses = {call.env["MASTER_ADDR"] for call in job.calls}
    if job.option.nodes > 1:
        _check_meeting(job, addresses)
    else:
        assert addresses == {"127.0.0.1"}
    assert len({call.env["MASTER_PORT"] for call in job.calls}) == 1
    for call in job.calls:
        assert call.env["LOCAL_WORLD_SIZE"] == str(job.option.gpus_per_node)
        assert call.env["NODE_RANK"] == call.env["SLURM_NODEID"]
        assert call.env["TEHO_CLUSTER"] == job.option.cluster
        in_container = job.option.cluster == "lumi"
        assert (call.env.get("FI_MR_CACHE_MONITOR") == "userfaultfd") == in_container


def _check_each_node(job: Ran, launcher: str) -> None:
    """One launcher on each node, and the program's words behind its options."""
    assert [call.argv[0] for call in job.calls] == [launcher] * job.option.nodes
    assert len({call.node for call in job.calls}) == job.option.nodes
    for call in job.calls:
        assert call.argv[-len(PROGRAM) :] == PROGRAM


def _check_meeting(job: Ran, addresses: set[str]) -> None:
    """All meet on the first node."""
    first = {call.node for call in job.calls if call.env["SLURM_NODEID"] == "0"}
    assert addresses == first


def _check_torchrun(job: Ran) -> None:
    _check_each_node(job, "torchrun")
    for call in job.calls:
        assert call.options["nnodes"] == str(job.option.nodes)
        assert call.options["nproc_per_node"] == str(job.option.gpus_per_node)
    if job.option.nodes > 1:
        meeting = [call.options["rdzv_endpoint"].partition(":") for call in job.calls]
        _check_meeting(job, {address for address, _, _ in meeting})
        assert len({port for _, _, port in meeting}) == 1
        assert {call.options["rdzv_id"] for call in job.calls} == {
            call.env["SLURM_JOB_ID"] for call in job.calls
        }


def _check_accelerate(job: Ran) -> None:
    _check_each_node(job, "accelerate")
    for call in job.calls:
        assert call.argv[1] == "launch"
        assert call.options["num_processes"] == str(job.ranks)
        assert call.options["num_machines"] == str(job.option.nodes)
        if job.option.nodes > 1:
            assert call.options["machine_rank"] == call.env["SLURM_NODEID"]
    if job.option.nodes > 1:
        assert {call.options["machine_rank"] for call in job.calls} == {"0", "1"}
        _check_meeting(job, {call.options["main_process_ip"] for call in job.calls})


def _check_deepspeed(job: Ran) -> None:
    if job.option.nodes > 1:
        _check_torchrun(job)
        return
    _check_each_node(job, "deepspeed")
    assert job.calls[0].options["num_gpus"] == str(job.option.gpus_per_node)


_CHECKS = {
    "plain": _check_plain,
    "torchrun": _check_torchrun,
    "launch": _check_launch,
    "srun": _check_srun,
    "accelerate": _check_accelerate,
    "deepspeed": _check_deepspeed,
    "horovod": _check_tasks,
}
