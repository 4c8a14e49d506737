"""What a plan asks Grid Engine for, and what it refuses, on a site that was discovered."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from teho.clusters.catalogue import load_cluster
from teho.model.cluster import (
    Account,
    Cluster,
    Dialect,
    Gpu,
    NodeKind,
    ParallelEnvironment,
    Partition,
    Quota,
    Source,
)
from teho.model.member import Association, Live
from teho.model.plan import Answer, Option, Refusal
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script

SMP = ParallelEnvironment(name="smp", rule="one_node")
FOUR = ParallelEnvironment(name="mpi4", rule="fixed", cores_per_node=4)
FILL = ParallelEnvironment(name="fill", rule="fill", max_cores=48)
TURNS = ParallelEnvironment(name="turns", rule="spread")
V100 = Gpu(type="v100", count=4, vendor="nvidia", model="v100")
NODE = NodeKind(name="gpu", count=3, cores=16, memory="64000MiB", gpu=V100, source="GE")
ADA = Live(
    states={"all.q": "UP"}, user="ada", groups=(), user_lists=("staff",),
    associations=(Association(account="open"), Association(account="chem")),
)  # fmt: skip


def cluster(
    kind: NodeKind = NODE,
    environments: tuple[ParallelEnvironment, ...] = (SMP,),
    quotas: tuple[Quota, ...] = (),
    memory: str = "core",
    required: bool = False,
    **partition: Any,
) -> Cluster:
    """Return a site with one queue, `all.q`."""
    return Cluster(
        name="elm", title="Elm", site="x", scheduler="grid_engine", status="active",
        verified_on=date(2026, 11, 23), sources={"GE": Source(document="Grid Engine")},
        nodes=(kind,),
        partitions=(
            Partition(
                name="all.q", takes_cpu_jobs=True, source="GE",
                parallel_environments=environments, **{"kinds": (kind.name,), **partition},
            ),
        ),
        dialect=Dialect(
            gpus="-l gpu_{type}={count}", partition="optional", memory=memory,  # type: ignore[arg-type]
            memory_is_counted=True, source="GE",
        ),
        account=Account(required=required, option="-P", example="chem", source="GE"),
        quotas=quotas,
    )  # fmt: skip


def plan(site: Cluster, live: Live | None = ADA, **needs: Any) -> Answer:
    return answer(Request(**needs), [site], live={} if live is None else {"elm": live})


def only(site: Cluster, live: Live | None = ADA, **needs: Any) -> Option:
    (option,) = plan(site, live, **needs).options
    return option


def refusal(site: Cluster, live: Live | None = ADA, **needs: Any) -> Refusal:
    found = plan(site, live, **needs)
    assert not found.options
    return found.unfit[0].refusals[0]


def lines(site: Cluster, **needs: Any) -> set[str]:
    """Return the options of the script."""
    option = only(site, **needs, command=("true",))
    text = write_script(option, site, ScriptOptions()).text
    return {line.removeprefix("#$ ") for line in text.splitlines() if line.startswith("#$ ")}


def test_cores_of_one_node_come_from_an_environment_that_keeps_them_together() -> None:
    site = cluster(environments=(FILL, FOUR, SMP))
    assert "-pe smp 3" in lines(site, gpus=0, cpus=3)
    assert not any(line.startswith("-pe") for line in lines(site, gpus=0, cpus=1))
    # A fixed number does as well, if it is the one that is asked for.
    assert "-pe mpi4 4" in lines(cluster(environments=(FOUR,)), gpus=0, cpus=4)
    found = refusal(cluster(environments=(FOUR,)), gpus=0, cpus=7)
    assert (found.kind, found.instead) == ("parallel_environment", "--cpus 4")
    assert "mpi4 (4 on each node)" in found.sentence
    # Cores of two nodes may come, or surely do.
    assert only(cluster(environments=(FILL,)), gpus=0, cpus=15).unknown == (
        (
            "whether all cores are on one node: "
            "the parallel environment 'fill' allocates cores from one node after another"
        ),
    )
    assert refusal(cluster(environments=(TURNS,)), gpus=0, cpus=15).instead == "--cpus 1"
    assert refusal(cluster(environments=()), gpus=0, cpus=2).instead == "--cpus 1"
    alone = msgspec.structs.replace(NODE, count=1)
    assert "-pe fill 3" in lines(cluster(alone, environments=(FILL,)), gpus=0, cpus=3)


def test_what_is_filled_in_is_what_can_be_had() -> None:
    # The fair share of a GPU is four cores.
    assert "-pe mpi4 4" in lines(cluster(environments=(FOUR,)), gpus=1)
    assert only(cluster(environments=()), gpus=1).cpus_per_task == 1
    assert only(cluster(environments=(FILL,)), gpus=1).cpus_per_task == 1
    few = quota(limits={"cores": 3, "memory": 1000})
    option = only(cluster(quotas=(few,)), gpus=1)
    assert (option.cpus_per_task, option.memory_mib) == (3, 1000)


def test_jobs_are_on_one_node() -> None:
    found = refusal(cluster(), gpus=0, nodes=2, cpus=8, launcher="launch")
    assert (found.kind, found.instead) == ("one_node", "--nodes 1")
    assert found.sentence == (
        "the job requests 2 nodes; the cluster file of Elm has no option for several nodes"
    )
    told = plan(cluster(max_nodes=1), gpus=0, nodes=2, cpus=8, launcher="launch").unfit[0]
    assert [one.kind for one in told.refusals] == ["too_many_nodes"]


ARC4 = load_cluster("arc4", {"XDG_CONFIG_HOME": "/nonexistent"})


def on_arc4(**needs: Any) -> Answer:
    return answer(Request(**needs), [ARC4], even_if_retired=True)


def test_a_job_on_several_nodes_of_arc4_gets_whole_nodes() -> None:
    for needs in ({"nodes": 2}, {"nodes": 2, "cpus": 80}, {"cpus": 80, "launcher": "launch"}):
        option = on_arc4(gpus=0, local_disk_gib=100.0, command=("true",), **needs).options[0]
        assert (option.nodes, option.tasks_per_node, option.cpus_per_task) == (2, 1, 40)
        assert (option.memory_mib, option.automatic) == (None, ("memory",))
        assert option.given is not None
        assert (option.given.cores, option.given.memory_mib) == (40, 192 * 1024)
        text = write_script(option, ARC4, ScriptOptions()).text
        asked = [line for line in text.splitlines() if line.startswith("#$ -l")]
        assert asked == ["#$ -l nodes=2,ppn=40,tpp=1", "#$ -l h_rt=01:00:00"]


def test_gpus_on_several_nodes_are_refused_with_what_the_site_documents() -> None:
    (gpu_nodes, _) = on_arc4(gpus=4, nodes=2).unfit
    (found,) = gpu_nodes.refusals
    assert found.sentence == (
        "the job requests 2 nodes; ARC4 documents no option for GPUs on several nodes"
    )
    assert found.instead == "--nodes 1"
    # More GPUs than a job can have need no second reason.
    assert [one.kind for one in on_arc4(gpus=8).unfit[0].refusals] == ["too_many_gpus"]


def test_launchers_on_several_nodes_of_arc4() -> None:
    for launcher in ("torchrun", "accelerate", "deepspeed", "horovod", "srun"):
        (found,) = on_arc4(gpus=0, nodes=2, launcher=launcher).unfit[1].refusals
        assert (found.kind, found.instead) == ("no_such_launcher", "--launcher launch")

    def advice(**needs: Any) -> list[str]:
        (option, *_) = on_arc4(gpus=0, nodes=2, **needs).options
        return [one.sentence for one in option.advice if one.kind == "one_process_for_many"]

    (sentence,) = advice(command=("./solver",))
    assert sentence.endswith("`-- mpirun COMMAND` starts one process on each core")
    assert advice(command=("/opt/bin/mpirun", "./solver")) == []
    assert advice(command=("./solver",), launcher="launch") == []


def test_gpus_that_are_counted_for_each_slot() -> None:
    node = msgspec.structs.replace(NODE, gpu=msgspec.structs.replace(V100, per_slot=True))
    assert {"-l gpu_v100=1", "-pe smp 4"} <= lines(cluster(node), gpus=4)
    assert {"-l gpu_v100=2", "-pe smp 2"} <= lines(cluster(node), gpus=4, cpus=2)
    assert "-l gpu_v100=1" in lines(cluster(node), gpus=1)
    found = refusal(cluster(node), gpus=2, cpus=8)
    assert (found.kind, found.instead) == ("gpus_of_cores", "--cpus 2")
    # Of a consumable of the job the number is the job's.
    assert {"-l gpu_v100=2", "-pe smp 8"} <= lines(cluster(), gpus=2, cpus=8)


def test_memory_of_each_slot_adds_up_to_what_is_asked_for() -> None:
    assert "-l h_vmem=333M" in lines(cluster(), gpus=0, cpus=3, memory_mib=999)
    # To a KiB of each slot, and never more than there is.
    assert "-l h_vmem=341333K" in lines(cluster(), gpus=0, cpus=3, memory_mib=1000)
    assert "-l h_vmem=21845333K" in lines(cluster(), gpus=0, cpus=3, memory_mib=64000)
    assert "-l h_vmem=1000M" in lines(cluster(memory="node"), gpus=0, cpus=3, memory_mib=1000)
    bare = msgspec.structs.replace(NODE, memory_is_named=False)
    assert not any("h_vmem" in line for line in lines(cluster(bare), gpus=0))
    assert refusal(cluster(bare), gpus=0, memory_mib=10).kind == "memory_is_automatic"


def test_parallel_jobs_that_not_all_hosts_could_take_may_wait_for_ever() -> None:
    small = NodeKind(name="small", count=1, cores=16, memory="8000MiB", source="GE")
    site = cluster(memory="node", kinds=("gpu", "small"))
    site = msgspec.structs.replace(site, nodes=(NODE, small))
    sentence = (
        "whether the job ever starts: some hosts of the queue are smaller than others, and a "
        "parallel job that is too large for the smaller hosts may wait forever"
    )
    unsure = (sentence,)
    assert plan(site, gpus=0, cpus=2, memory_mib=9000).options[0].unknown == unsure
    assert plan(site, gpus=0, cpus=2, memory_mib=8000).options[0].unknown == ()
    assert plan(site, gpus=0, cpus=1, memory_mib=9000).options[0].unknown == ()
    # What is filled in is what each has.
    assert plan(site, gpus=1, cpus=8).options[0].memory_mib == 8000
    few = msgspec.structs.replace(NODE, name="few", gpu=msgspec.structs.replace(V100, count=1))
    mixed = msgspec.structs.replace(cluster(kinds=("gpu", "few")), nodes=(NODE, few))
    assert plan(mixed, gpus=2, cpus=2).options[0].unknown == unsure


def test_memory_that_is_not_counted_may_be_less() -> None:
    small = NodeKind(name="small", count=1, cores=16, memory="8000MiB", source="GE")
    site = cluster(kinds=("gpu", "small"))
    dialect = msgspec.structs.replace(site.dialect, memory_is_counted=None)
    site = msgspec.structs.replace(site, nodes=(NODE, small), dialect=dialect)
    assert plan(site, gpus=0, memory_mib=8000).options[0].unknown == ()
    assert plan(site, gpus=0, memory_mib=8001).options[0].unknown == (
        "whether the node has enough memory for the job: Grid Engine does not count memory here",
    )


def test_the_environment_whose_quota_allows_it_is_taken() -> None:
    own = ParallelEnvironment(name="own", rule="one_node")
    few = quota(limits={"cores": 1}, environments=("smp",))
    site = cluster(environments=(SMP, own), quotas=(few,))
    assert "-pe own 2" in lines(site, gpus=0, cpus=2)
    elsewhere = ParallelEnvironment(name="elsewhere", rule="one_node", kinds=("cpu",))
    assert "-pe smp 2" in lines(cluster(environments=(elsewhere, SMP)), gpus=0, cpus=2)
    # Without an environment a GPU is had that its quota does not allow.
    gpus = quota(limits={"gpu:v100": 0}, environments=("smp",))
    assert only(cluster(quotas=(gpus,)), gpus=1).cpus_per_task == 1


def test_a_queue_that_is_not_for_batch_takes_parallel_jobs() -> None:
    site = cluster(only_parallel=True)
    assert "-pe smp 1" in lines(site, gpus=0, cpus=1)
    fixed = cluster(only_parallel=True, environments=(FOUR,))
    assert refusal(fixed, gpus=0, cpus=1).instead == "--cpus 4"


def test_states_lists_and_projects_of_the_moment() -> None:
    off = msgspec.structs.replace(ADA, states={"all.q": "DISABLED"})
    assert "DISABLED now: the queue starts no jobs" in refusal(cluster(), off).sentence
    assert only(cluster(), None).unknown == ("whether the queue starts jobs now",)

    assert only(cluster(user_lists=("staff", "phd"))).unknown == ()
    assert refusal(cluster(user_lists=("phd",))).kind == "user_list"
    assert refusal(cluster(denied_user_lists=("staff",))).kind == "user_list"
    unread = msgspec.structs.replace(ADA, user_lists=None)
    assert only(cluster(user_lists=("phd",)), unread).unknown == (
        "whether the queue's user lists allow you to use it",
    )

    found = refusal(cluster(), account="nowhere")
    assert found.sentence == "you cannot use project 'nowhere' (your projects: open, chem)"
    assert only(cluster(), account="chem").account == "chem"
    assert refusal(cluster(required=True)).instead == "--account open"
    assert refusal(cluster(accounts=("chem",)), account="open").instead == "--account chem"
    assert "the job has no project" in refusal(cluster(accounts=("chem",))).sentence
    assert refusal(cluster(denied_accounts=("chem",)), account="chem").kind == "account"
    # Off the cluster her default project is not known.
    assert only(cluster(accounts=("chem",)), None).unknown == (
        "whether the queue starts jobs now",
        "whether the queue accepts your default project",
    )
    own = msgspec.structs.replace(ADA, default_account="chem")
    assert only(cluster(accounts=("chem",)), own).account == ""
    closed = ParallelEnvironment(name="own", rule="one_node", user_lists=("phd",))
    assert refusal(cluster(environments=(closed,)), gpus=0, cpus=2).kind == "parallel_environment"


def quota(**fields: Any) -> Quota:
    return Quota(
        **{"source": "GE", "name": "few", "partitions": ("all.q",), "kinds": ("gpu",), **fields}
    )


@pytest.mark.parametrize(
    ("fields", "needs", "sentence"),
    [
        ({"limits": {"cores": 4}}, {"gpus": 0, "cpus": 5}, "5 cores, more than the limit of 4"),
        ({"limits": {"gpu:v100": 1}}, {"gpus": 2}, "2 v100 GPUs, more than the limit of 1"),
        (
            {"limits": {"memory": 1024}, "per_node": True},
            {"gpus": 0, "memory_mib": 2048},
            "2 GiB of memory, more than the limit of 1 GiB of memory per node",
        ),
        ({"limits": {"cores": 1}, "users": ("ada",)}, {"gpus": 0, "cpus": 2}, "2 cores"),
        ({"limits": {"cores": 1}, "users": ("@staff",)}, {"gpus": 0, "cpus": 2}, "2 cores"),
        ({"limits": {"cores": 1}, "environments": ("*",)}, {"gpus": 0, "cpus": 2}, "2 cores"),
        ({"limits": {"cores": 1}, "projects": ("!*",)}, {"gpus": 0, "cpus": 2}, "2 cores"),
    ],
)
def test_a_quota_that_matches_applies(
    fields: dict[str, Any], needs: dict[str, Any], sentence: str
) -> None:
    found = refusal(cluster(quotas=(quota(**fields),)), **needs)
    assert found.kind == "limit"
    assert found.sentence.startswith(f"the job requests {sentence}")
    assert found.sentence.endswith("(resource quota 'few')")


@pytest.mark.parametrize(
    "fields",
    [
        {"partitions": ("other.q",)},
        {"kinds": ()},
        {"users": ("eve",)},
        {"users": ("!ada",)},
        {"users": ("*", "!@staff")},
        {"environments": ("!smp",)},
        {"environments": ("!*",)},
        {"projects": ("*",)},
        {"projects": ("chem",)},
    ],
)
def test_a_quota_for_others_does_not(fields: dict[str, Any]) -> None:
    none = quota(limits={"cores": 1}, **fields)
    assert only(cluster(quotas=(none,)), gpus=0, cpus=2).unknown == ()
    # The next rule of the set is looked at then, and none after one that matches.
    found = refusal(cluster(quotas=(none, quota(limits={"cores": 1}))), gpus=0, cpus=2)
    assert found.kind == "limit"
    first = (quota(limits={"cores": 8}), quota(limits={"cores": 1}))
    assert only(cluster(quotas=first), gpus=0, cpus=2).unknown == ()


def test_a_quota_that_may_apply_is_unknown() -> None:
    users = quota(limits={"cores": 1}, users=("eve",))
    assert only(cluster(quotas=(users,)), None, gpus=0, cpus=2).unknown == (
        "whether the queue starts jobs now",
        "whether resource quota 'few' applies to the job",
    )
    projects = quota(limits={"cores": 1}, projects=("chem",))
    assert only(cluster(quotas=(projects,)), None, gpus=0, cpus=2).unknown[1:] == (
        "whether resource quota 'few' applies to the job",
    )
    assert refusal(cluster(quotas=(projects,)), None, gpus=0, cpus=2, account="chem")
    some = quota(limits={"cores": 1}, kinds=(), kinds_in_part=("gpu",))
    assert only(cluster(quotas=(some,)), gpus=0, cpus=2).unknown == (
        "whether resource quota 'few' applies to the job",
    )
    unread = quota(limits={}, unread=("licence",))
    assert only(cluster(quotas=(unread,)), gpus=0).unknown == (
        "how much of resource 'licence' the job may use (resource quota 'few')",
    )
