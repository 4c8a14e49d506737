"""Who may use a partition, and whose limits hold, on a Slurm that was discovered."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest

from teho.model.cluster import (
    Account,
    Billing,
    Cluster,
    Dialect,
    Gpu,
    NodeKind,
    OtherGpus,
    Partition,
    Qos,
    Source,
    Term,
)
from teho.model.member import Association, Live, NodesNow
from teho.model.plan import Answer, Option, Refusal
from teho.model.request import Request
from teho.planner.answer import answer

A100 = Gpu(type="a100", count=4, vendor="nvidia", model="a100")
GPU = NodeKind(name="gpu", count=4, cores=32, sockets=2, memory="128000MiB", gpu=A100, source="S")
CPU = NodeKind(name="cpu", count=8, cores=32, sockets=2, memory="64000MiB", source="S")
WIDE = NodeKind(name="wide", count=2, cores=64, sockets=2, memory="64000MiB", source="S")
OWN = Association(account="lab", default_qos="normal", qos=("normal", "long"))
MEMBER = Live(states={"gpu": "UP"}, groups=("users",), default_account="lab", associations=(OWN,))


def cluster(
    *kinds: NodeKind,
    qos: dict[str, Qos] | None = None,
    enforced: tuple[str, ...] = ("associations", "limits", "qos"),
    dialect: dict[str, Any] | None = None,
    **partition: Any,
) -> Cluster:
    """Return a site with one partition, `gpu`."""
    told = {"gpus": "--gpus-per-node={type}:{count}", "memory_is_counted": True, "source": "S"}
    of = {"kinds": tuple(kind.name for kind in kinds), "takes_cpu_jobs": True, "source": "S"}
    return Cluster(
        name="oak", title="Oak", site="x", scheduler="slurm", status="active",
        verified_on=date(2026, 11, 23), sources={"S": Source(document="Slurm")},
        nodes=kinds, partitions=(Partition(name="gpu", **of | partition),),
        dialect=Dialect(**told | (dialect or {})),
        account=Account(required=False, example="lab", source="S"),
        qos={"normal": Qos(source="S"), **(qos or {})}, enforced=enforced,
        billing={"gpu": Billing(unit="hours", sum=(Term(quantity="cpus"),), source="S")},
        counted_gpus=("a100",),
    )  # fmt: skip


def plan(site: Cluster, live: Live | None = MEMBER, **needs: Any) -> Answer:
    return answer(Request(**needs), [site], live={} if live is None else {"oak": live})


def only(site: Cluster, live: Live | None = MEMBER, **needs: Any) -> Option:
    (option,) = plan(site, live, **needs).options
    return option


def refusal(site: Cluster, live: Live | None = MEMBER, **needs: Any) -> Refusal:
    found = plan(site, live, **needs)
    assert not found.options
    return found.unfit[0].refusals[0]


def change(live: Live = MEMBER, **fields: Any) -> Live:
    return msgspec.structs.replace(live, **fields)


@pytest.mark.parametrize(
    ("state", "words"),
    [("DOWN", "do not start"), ("DRAIN", "no new jobs start"), ("INACTIVE", "accepts no jobs")],
)
def test_a_partition_that_starts_nothing_does_not_fit(state: str, words: str) -> None:
    found = refusal(cluster(GPU), change(states={"gpu": state}))
    assert (found.kind, found.source) == (
        "partition_state",
        "`scontrol show partition`, read just now",
    )
    assert state in found.sentence
    assert words in found.sentence
    assert only(cluster(GPU), change(states=None)).unknown == (
        "whether the partition accepts jobs now",
    )


def test_nodes_that_are_all_out_of_service_do_not_fit() -> None:
    def nodes(working: int) -> tuple[NodesNow, ...]:
        gpus = (("a100", 4),)
        own = NodesNow(partition="gpu", cpus=32, gpus=gpus, in_service=working)
        return (own,)

    assert refusal(cluster(GPU), change(nodes=nodes(0))).kind == "nodes_out_of_service"
    assert only(cluster(GPU), change(nodes=nodes(1)))
    few = refusal(cluster(GPU), change(nodes=nodes(1)), gpus=8)
    assert few.sentence == (
        "the job requests 2 nodes; only 1 such node in partition gpu is in service now"
    )
    assert only(cluster(GPU), change(nodes=nodes(2)), gpus=8)


@pytest.mark.parametrize(
    ("limits", "needs", "kind", "instead"),
    [
        ({"accounts": ("chem",)}, {}, "account", ""),
        ({"denied_accounts": ("LAB",)}, {}, "account", ""),
        ({}, {"account": "nowhere"}, "account", "--account lab"),
        ({"groups": ("wheel",)}, {}, "group", ""),
        ({"allowed_qos": ("long",)}, {}, "qos", "--qos long"),
        ({"denied_qos": ("normal",)}, {}, "qos", "--qos long"),
        ({}, {"qos": "debug"}, "qos", "--qos normal"),
        ({"needs_reservation": True}, {}, "needs_reservation", "--reservation NAME"),
    ],
)
def test_who_may_not_use_a_partition(
    limits: dict[str, Any], needs: dict[str, Any], kind: str, instead: str
) -> None:
    found = refusal(cluster(GPU, **limits), **needs)
    assert (found.kind, found.instead) == (kind, instead)
    # Elsewhere than on the cluster nobody can say so.
    if kind in {"account", "group", "qos"}:
        assert only(cluster(GPU, **limits), None, **needs).unknown


def test_an_unknown_account_does_not_matter_if_nothing_is_enforced() -> None:
    assert only(cluster(GPU, enforced=()), account="nowhere")
    allowed = cluster(GPU, enforced=(), accounts=("chem",))
    assert refusal(allowed, account="nowhere").kind == "account"


def qos(**limits: Any) -> Qos:
    return Qos(source="S", **limits)


@pytest.mark.parametrize(
    ("limits", "fits", "breaks"),
    [
        ({"max_of_job": {"cpu": 8}}, {"cpus": 8}, {"cpus": 9}),
        ({"max_of_job": {"gres/gpu": 2}}, {"gpus": 2, "cpus": 2}, {"gpus": 3, "cpus": 3}),
        ({"max_of_job": {"gres/gpu:a100": 2}}, {"gpus": 2, "cpus": 2}, {"gpus": 3, "cpus": 3}),
        ({"max_of_job": {"mem": 1000}}, {"memory_mib": 1000}, {"memory_mib": 1001}),
        ({"max_of_job": {"node": 1}}, {"gpus": 4}, {"gpus": 8}),
        ({"max_of_user": {"cpu": 8}}, {"cpus": 8}, {"cpus": 9}),
        ({"max_of_all": {"cpu": 8}}, {"cpus": 8}, {"cpus": 9}),
        ({"max_of_node": {"cpu": 8}}, {"cpus": 16, "gpus": 8}, {"cpus": 18, "gpus": 8, "nodes": 2}),
        ({"min_of_job": {"gres/gpu": 2}}, {"gpus": 2}, {"gpus": 1}),
        ({"max_time": "1h"}, {"time_s": 3600.0}, {"time_s": 3601.0}),
    ],
)
def test_both_sides_of_a_limit_of_the_jobs_qos(
    limits: dict[str, Any], fits: dict[str, Any], breaks: dict[str, Any]
) -> None:
    site = cluster(GPU, qos={"normal": qos(**limits)})
    assert only(site, **fits)
    found = refusal(site, **breaks)
    assert found.kind in {"limit", "too_long"}
    assert "QOS normal" in found.sentence
    assert found.instead == "--qos long"  # which has no limits
    # Where limits are not enforced they are none.
    assert only(cluster(GPU, qos={"normal": qos(**limits)}, enforced=("associations",)), **breaks)


def test_the_partitions_qos_comes_before_the_jobs_unless_that_says_otherwise() -> None:
    strict, lax = qos(max_of_job={"cpu": 4}), {"cpu": 16}
    both = {"bound": qos(max_of_job=lax), "normal": strict}
    assert only(_bound(both), cpus=16)
    own = qos(max_of_job={"cpu": 4}, flags=("OverPartQOS",))
    over = {"bound": qos(max_of_job=lax), "normal": own}
    assert refusal(_bound(over), cpus=5).kind == "limit"


def _bound(names: dict[str, Qos]) -> Cluster:
    site = cluster(GPU, qos=names)
    (part,) = site.partitions
    return msgspec.structs.replace(site, partitions=(msgspec.structs.replace(part, qos="bound"),))


def test_an_associations_limits_apply_if_no_qos_has_one() -> None:
    mine = Association(account="lab", default_qos="normal", qos=("normal",), max_of_job={"cpu": 4})
    assert refusal(cluster(GPU), change(associations=(mine,)), cpus=5).kind == "limit"
    above = {"normal": qos(max_of_job={"cpu": 8})}
    assert only(cluster(GPU, qos=above), change(associations=(mine,)), cpus=8)
    here = Association(account="lab", partition="gpu", max_of_account={"cpu": 2}, qos=("normal",))
    assert refusal(cluster(GPU), change(associations=(mine, here)), cpus=3).kind == "limit"


def test_a_job_fits_under_another_account() -> None:
    poor = Association(account="lab", qos=("normal",), max_of_job={"cpu": 4})
    rich = Association(account="chem", qos=("normal",))
    found = refusal(cluster(GPU), change(associations=(poor, rich)), cpus=5)
    assert found.instead == "--account chem"


def test_what_is_filled_in_keeps_to_the_limits() -> None:
    # A quarter of the node is 8 cores and 32000 MiB.
    assert only(cluster(GPU)).cpus_per_task == 8
    strict = only(cluster(GPU, qos={"normal": qos(max_of_job={"cpu": 3, "mem": 5000})}))
    assert (strict.cpus_per_task, strict.memory_mib) == (3, 5000)
    assert only(cluster(GPU, qos={"normal": qos(max_time="10min")})).time_s == 600


def test_a_job_that_names_no_qos_has_hers_the_only_one_or_the_clusters_own() -> None:
    both = {"normal": qos(max_of_job={"cpu": 2}), "long": qos(max_of_job={"cpu": 4})}
    for default, names, most in (
        ("long", ("normal", "long"), 4), ("", ("long",), 4), ("", ("long", "normal"), 2),
    ):  # fmt: skip
        own = Association(account="lab", default_qos=default, qos=names)
        live = change(associations=(own,))
        assert only(cluster(GPU, qos=both), live, cpus=most)
        assert refusal(cluster(GPU, qos=both), live, cpus=most + 1).kind == "limit"


def test_a_flag_of_a_qos_lifts_the_partitions_time() -> None:
    lifted = {"normal": qos(flags=("PartitionTimeLimit",), max_time="2d")}
    assert only(cluster(GPU, qos=lifted, max_time="1h"), time_s=86400.0)
    assert refusal(cluster(GPU, max_time="1h"), time_s=86400.0).kind == "too_long"
    # The partition's own QOS does not lift the limit.
    site = _bound({"bound": lifted["normal"]})
    (part,) = site.partitions
    short = msgspec.structs.replace(part, max_time="1h")
    site = msgspec.structs.replace(site, partitions=(short,))
    assert refusal(site, time_s=86400.0).kind == "too_long"


# What Slurm gives.


def given(site: Cluster, **needs: Any) -> Any:
    return only(site, **needs).given


def test_threads_are_asked_for_and_billed_as_cpus() -> None:
    twice = NodeKind(
        name="smt", count=8, cores=16, threads_per_core=2, sockets=2, memory="64000MiB", source="S"
    )
    option = only(cluster(twice, billing="gpu"), gpus=0, cpus=5)
    assert (option.cpus_per_task, option.cpus_per_core, option.one_thread) == (5, 2, False)
    assert (option.given.cores, option.given.cpus) == (5, 10)
    assert option.cost.amount == 10
    # If a job may come to nodes of either kind, it has as many cores on both, and its bill is open.
    mixed = only(cluster(twice, CPU, billing="gpu"), gpus=0, cpus=5, memory_mib=1000)
    assert (mixed.cpus_per_core, mixed.one_thread) == (1, True)
    assert (mixed.given.cores, mixed.given.cpus, mixed.cost) == (5, None, None)


def test_threads_of_fewer_cores_are_not_taken_for_cores() -> None:
    few = NodeKind(name="few", count=8, cores=8, threads_per_core=2, memory="64000MiB", source="S")
    # 10 CPUs would be 5 cores of the nodes with threads.
    (option,) = plan(cluster(CPU, few), gpus=0, cpus=10, memory_mib=1000).options
    assert (option.node_kind, option.one_thread, option.given.cores) == ("cpu", True, 10)


def test_single_cpus_are_given_if_kinds_differ_in_threads() -> None:
    twice = NodeKind(
        name="smt", count=8, cores=16, threads_per_core=2, sockets=2, memory="64000MiB", source="S"
    )
    # With CR_CPU, one thread of each core would be half of the cores.
    option = plan(
        cluster(twice, CPU, dialect={"gives_whole": "cpus"}, billing="gpu"),
        gpus=0, cpus=5, memory_mib=1000,
    ).options[0]  # fmt: skip
    assert (option.cpus_per_core, option.one_thread) == (2, False)
    assert option.given is not None
    assert (option.given.cores, option.given.cpus) == (None, 10)
    assert option.cost is not None
    assert option.cost.amount == 10


def test_a_limit_that_depends_on_the_node_is_unsure() -> None:
    small = NodeKind(name="small", count=8, cores=16, memory="64000MiB", source="S")
    large = NodeKind(name="large", count=8, cores=32, memory="64000MiB", source="S")

    def whole(most: int) -> Cluster:
        own = Qos(max_of_job={"cpu": most}, source="S")
        return cluster(small, large, qos={"normal": own}, exclusive=True)

    assert plan(whole(32), gpus=0, memory_mib=1000).options[0].unknown == ()
    assert plan(whole(16), gpus=0, memory_mib=1000).options[0].unknown == (
        (
            "whether the job stays within the limit of 16 CPUs per job (QOS normal): "
            "the allocation of the job depends on the node"
        ),
    )
    found = plan(whole(15), gpus=0, memory_mib=1000)
    assert not found.options
    assert found.unfit[0].refusals[0].sentence == (
        "the job has 16 CPUs, more than the limit of 15 CPUs per job (QOS normal)"
    )


def test_gpus_are_unsure_if_a_limit_on_cpus_is_not_a_whole_number_of_cores() -> None:
    def limited(most: int) -> Cluster:
        kind = msgspec.structs.replace(GPU, threads_per_core=2)
        return cluster(kind, max_cpus_per_node=most, max_cores_per_node=most // 2)

    assert plan(limited(32)).options[0].unknown == ()
    assert plan(limited(31)).options[0].unknown == (
        (
            "whether Slurm accepts a job with GPUs: the limit of 31 CPUs per node is not a whole "
            "number of cores (each core has 2 CPUs)"
        ),
    )


def test_one_thread_of_each_core_is_asked_for_if_no_node_with_threads_has_so_many_cores() -> None:
    twice = NodeKind(name="smt", count=8, cores=16, threads_per_core=2, memory="64GiB", source="S")
    site = cluster(twice, CPU, dialect={"gives_whole": "cpus"})
    (option,) = plan(site, gpus=0, cpus=20, memory_mib=1000).options
    assert (option.node_kind, option.cpus_per_core, option.one_thread) == ("cpu", 1, True)
    assert option.given is not None
    assert (option.given.cores, option.given.cpus) == (20, 20)


def test_a_node_whose_reserved_core_makes_it_too_small_may_come_for_its_threads() -> None:
    # Slurm 22.05 with CR_CPU counts the reserved core for --threads-per-core=1, and then gives
    # threads: 20 CPUs there are 10 cores.
    twice = NodeKind(
        name="smt", count=8, cores=20, usable_cores=19, threads_per_core=2, memory="64GiB",
        source="S",
    )  # fmt: skip
    site = cluster(twice, CPU, dialect={"gives_whole": "cpus"})
    for option in plan(site, gpus=0, cpus=16, memory_mib=1000).options:
        assert (option.cpus_per_core, option.one_thread, option.unknown) == (2, False, ())
    # Two CPUs for each of 20 cores are more than the other nodes have.
    (option,) = plan(site, gpus=0, cpus=20, memory_mib=1000).options
    assert (option.node_kind, option.cpus_per_core, option.one_thread) == ("cpu", 1, True)
    assert option.given is not None
    assert (option.given.cores, option.given.cpus) == (None, 20)
    (unknown,) = option.unknown
    assert unknown.startswith("whether the job gets 20 cores or only 10 on each node: on nodes")
    # 40 CPUs are more than the 38 of the other nodes for jobs, but Slurm may give all 40.
    (option,) = plan(cluster(twice, WIDE, dialect={"gives_whole": "cpus"}), gpus=0, cpus=20).options
    assert option.given is not None
    assert (option.cpus_per_core, option.given.cores, option.given.cpus) == (2, None, 40)


def test_a_minimum_is_compared_with_what_is_asked_of_a_whole_node() -> None:
    least = {"normal": qos(min_of_job={"gres/gpu": 2, "gres/gpu:a100": 2, "cpu": 8})}
    site = cluster(GPU, exclusive=True, qos=least)
    assert only(site, gpus=2)
    assert "1 GPU, less than the minimum of 2 GPUs" in refusal(site, gpus=1).sentence
    assert "2 CPUs, less than the minimum of 8" in refusal(site, gpus=2, cpus_per_gpu=1).sentence


def test_cores_for_memory_are_single_threads_if_these_are_asked_for() -> None:
    # 7000 MiB at 2000 MiB a CPU are 4 CPUs: with --threads-per-core=1 of 4 cores (Slurm 22.05).
    twice = NodeKind(name="smt", count=8, cores=16, threads_per_core=2, memory="64GiB", source="S")
    site = cluster(twice, CPU, max_memory_per_cpu="2000MiB")
    plain, smt = plan(site, gpus=0, cpus=2, memory_mib=7000).options
    assert (smt.node_kind, smt.one_thread, plain.node_kind) == ("smt", True, "cpu")
    assert smt.given is not None
    assert (smt.given.cores, plain.cpus_per_task) == (4, 4)


def test_cpus_of_a_whole_node_are_limited_by_the_most_memory_of_each() -> None:
    # 128000 MiB at 8000 MiB a CPU are 16 of its 32 CPUs; seen with Slurm 22.05.
    site = cluster(GPU, exclusive=True, max_memory_per_cpu="8000MiB")
    option = only(site, gpus=2)
    assert (option.cpus_per_task, option.memory_mib) == (16, 128000)
    assert only(site, gpus=2, cpus=16)
    found = refusal(site, gpus=2, cpus=17)
    assert (found.kind, found.instead) == ("memory_of_whole_node", "--cpus 16")
    assert "the memory of the node is enough for only 16 CPUs" in found.sentence
    # Of a node that is shared, the memory that is asked for counts.
    shared = cluster(GPU, max_memory_per_cpu="8000MiB")
    assert only(shared, gpus=2, cpus=17)
    assert refusal(shared, gpus=2, cpus=17, exclusive=True).kind == "memory_of_whole_node"


def test_cores_are_unknown_if_slurm_gives_them_for_the_default_memory_of_gpus() -> None:
    needs, gpus = {"default_memory_per_gpu": "64000MiB"}, {"gpus": 3, "cpus_per_gpu": 1}
    option = only(cluster(GPU, **needs), **gpus)
    assert option.given is not None
    assert option.given.cores == 3
    most = {"normal": qos(max_of_user={"cpu": 31})}
    option = only(cluster(GPU, max_memory_per_cpu="64000MiB", qos=most, **needs), **gpus)
    assert option.given is not None
    assert option.given.cores is None
    assert "stays within the limit of 31 CPUs per job" in option.unknown[0]


def test_memory_of_each_gpu_is_that_of_all_gpus_of_a_whole_node() -> None:
    # Slurm gives all four, and each has its memory.
    site = cluster(GPU, exclusive=True, default_memory_per_gpu="64000MiB")
    option = only(site, gpus=3)
    assert (option.memory_per_gpu, option.memory_mib) == (True, 3 * 32000)
    assert option.given is not None
    assert option.given.memory_mib == 128000
    assert refusal(site, gpus=3, memory_mib=120000).kind == "too_much_memory"


def test_single_cpus_of_whole_nodes_are_asked_for_by_the_core() -> None:
    twice = NodeKind(
        name="smt", count=8, cores=16, threads_per_core=2, sockets=2, memory="64000MiB", source="S"
    )
    site = cluster(twice, CPU, dialect={"gives_whole": "cpus"}, exclusive=True)
    assert plan(site, gpus=0, cpus=12, memory_mib=1000).options[0].one_thread


def test_whole_nodes_with_more_cores_than_a_job_may_have_cannot_be_had() -> None:
    found = refusal(cluster(CPU, exclusive=True, max_cores_per_node=16), gpus=0)
    assert (found.kind, found.instead) == ("too_many_cores_per_node", "")
    assert "a whole node has 32 cores" in found.sentence
    # Nodes of such a kind are not counted either.
    one = NodeKind(name="one", count=1, cores=16, memory="64000MiB", source="S")
    site = cluster(one, CPU, exclusive=True, max_cores_per_node=16)
    assert plan(site, gpus=0, nodes=2, cpus=20, launcher="srun").unfit[0].refusals[0].kind == (
        "too_many_nodes"
    )
    asked = refusal(cluster(CPU, max_cores_per_node=16), gpus=0, exclusive=True)
    assert asked.instead == "leave --exclusive out"


def test_whole_sockets_and_whole_nodes_are_given() -> None:
    sockets = {"gives_whole": "sockets"}
    assert given(cluster(CPU, dialect=sockets), gpus=0, cpus=5).cores == 16
    assert given(cluster(CPU, dialect=sockets), gpus=0, cpus=17).cores == 32
    assert given(cluster(GPU, dialect=sockets), cpus=5).cores is None
    also = NodeKind(
        name="gpu", count=4, cores=32, memory="128000MiB", gpu=A100,
        other_gpus=(OtherGpus(type="l40s", count=2),), source="S",
    )  # fmt: skip
    whole = given(cluster(also, exclusive=True), memory_mib=1000)
    assert (whole.cores, whole.gpus, whole.memory_mib) == (32, (("a100", 4), ("l40s", 2)), 1000)


def advice(site: Cluster, **needs: Any) -> set[str]:
    return {one.kind for one in only(site, **needs).advice}


def test_differences_from_the_request_are_reported() -> None:
    assert "whole_sockets" in advice(cluster(CPU, dialect={"gives_whole": "sockets"}), gpus=0)
    assert "whole_sockets" not in advice(cluster(CPU), gpus=0)
    memory = {"gpus": 0, "cpus": 2, "memory_mib": 3500}
    assert "cores_for_memory" in advice(cluster(CPU, max_memory_per_cpu="1000MiB"), **memory)
    assert "cores_for_memory" not in advice(cluster(CPU, max_memory_per_cpu="2000MiB"), **memory)
    assert "gpu_nodes_without_gpus" in advice(cluster(GPU), gpus=0)
    assert "gpu_nodes_without_gpus" not in advice(cluster(CPU), gpus=0)


def test_more_memory_than_its_cores_may_have_is_more_cores() -> None:
    site = cluster(CPU, max_memory_per_cpu="1000MiB")
    assert only(site, gpus=0, cpus=2, memory_mib=3500).cpus_per_task == 4
    found = refusal(site, gpus=0, cpus=2, memory_mib=40000)
    assert found.kind == "too_many_cores_per_node"
    assert "(40000 MiB of memory at 1000 MiB per CPU)" in found.sentence


def test_a_default_above_the_node_is_reported_for_each_gpu() -> None:
    big = only(cluster(GPU, default_memory_per_gpu="100000MiB"), gpus=2)
    assert (big.memory_per_gpu, big.memory_mib) == (True, 128000)
    small = only(cluster(GPU, default_memory_per_gpu="1000MiB"), gpus=2)
    assert (small.memory_per_gpu, small.memory_mib) == (False, 2000)
    both = {"default_memory_per_gpu": "100000MiB", "default_memory_per_cpu": "16000MiB"}
    assert only(cluster(GPU, **both), gpus=2).cpus_per_task == 8  # 8 × 16000 MiB are a node's
    assert refusal(cluster(GPU, **both), gpus=2, cpus=9, nodes=1).kind == "default_memory"


def test_jobs_without_gpus_go_to_gpu_nodes_last() -> None:
    labels = [one.node_kind for one in plan(cluster(GPU, CPU), gpus=0, cpus=4).options]
    assert labels == ["cpu", "gpu"]
    assert only(cluster(GPU), gpus=0, cpus=4).gpu_type == ""
    assert refusal(cluster(GPU, takes_cpu_jobs=False), gpus=0).kind == "no_such_nodes"


def test_partitions_may_have_fewer_nodes_than_their_kind() -> None:
    assert only(cluster(GPU), gpus=16).nodes == 4
    assert refusal(cluster(GPU, node_counts={"gpu": 3}), gpus=16).kind == "too_many_nodes"


def test_gpus_whose_cores_do_not_fit_are_laid_out_on_more_nodes() -> None:
    option = only(cluster(GPU), gpus=4, cpus_per_gpu=10)
    assert (option.nodes, option.cpus_per_task) == (2, 20)
    assert any(one.kind == "gpus_spread" for one in option.advice)
    # Whole nodes are billed whole: it is better to ask for fewer cores.
    found = refusal(cluster(GPU, exclusive=True), gpus=4, cpus_per_gpu=10)
    assert (found.kind, found.instead) == ("too_many_cores_per_node", "--cpus-per-gpu 8")


def test_a_gpu_whose_name_says_nothing_is_asked_for_by_name() -> None:
    blue = Gpu(type="blue", count=4, vendor="nvidia", model="blue", may_be_slice=True)
    kind = NodeKind(name="gpu", count=4, cores=32, memory="128000MiB", gpu=blue, source="S")
    assert refusal(cluster(kind)).instead == "--gpu-type blue"
    assert only(cluster(kind), gpu_type="blue").gpu_type == "blue"


def test_limits_that_cannot_be_judged_here_are_named() -> None:
    limited = {"normal": Qos(max_of_job={"billing": 5, "cpu": 64}, source="S")}
    assert only(cluster(GPU, qos=limited)).unknown == (
        (
            "whether the job stays within the limit of billing=5 per job (QOS normal): "
            "Teho does not know how much billing the job gets"
        ),
    )
    unread = msgspec.structs.replace(OWN, max_of_account=None)
    assert only(cluster(GPU), change(associations=(unread,))).unknown == (
        "the limits of account lab for all its users together",
    )
