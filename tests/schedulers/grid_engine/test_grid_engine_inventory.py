"""A cluster from Grid Engine's answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

import msgspec
import pytest

from teho.errors import InputError
from teho.model.cluster import Cluster, Partition
from teho.schedulers.command import Completed
from teho.schedulers.grid_engine.inventory import grid_engine_cluster

DATA = Path(__file__).parents[2] / "data" / "discover" / "grid_engine"
TODAY = date(2026, 11, 20)


def answers(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
    assert argv[0] == "qconf"
    assert repeat
    assert timeout_s >= 1
    path = DATA / f"{'_'.join(argv[1:]).lstrip('-').replace('@', '')}.txt"
    if not path.exists():
        return Completed(tuple(argv), 1, "", "none defined\n")
    return Completed(tuple(argv), 0, path.read_text(), "")


@pytest.fixture(scope="module")
def elm() -> Cluster:
    environment = {"SGE_CLUSTER_NAME": "elm"}
    return grid_engine_cluster(answers, environment=environment, host="login1", today=TODAY)


def part(cluster: Cluster, name: str) -> Partition:
    (found,) = [one for one in cluster.partitions if one.name == name]
    return found


def test_the_cluster_itself(elm: Cluster) -> None:
    assert (elm.name, elm.scheduler) == ("elm", "grid_engine")
    assert elm.recognised_by == {"SGE_CLUSTER_NAME": "elm"}
    assert elm.sources["GE"].document == "Grid Engine 8.1.9 on login1"
    assert elm.account.required
    assert elm.local_disk is not None
    assert elm.local_disk.variable == "TMPDIR"


def test_the_cluster_must_have_a_name() -> None:
    with pytest.raises(InputError, match="--name NAME"):
        grid_engine_cluster(answers, environment={}, host="login1", today=TODAY)
    named = grid_engine_cluster(answers, environment={}, host="h", today=TODAY, name="Oak")
    assert named.name == "oak"


def test_the_smaller_of_host_and_queue_counts(elm: Cluster) -> None:
    of_gpu = [kind for kind in elm.nodes if kind.name in part(elm, "gpu.q").kinds]
    # g1 has the host's two GPUs, its twin one less by the queue's own word for it.
    counts = {kind.gpu.count: kind.count for kind in of_gpu if kind.gpu}
    assert counts == {2: 1, 1: 1}
    assert {kind.memory for kind in of_gpu} == {"180GiB"}
    assert {kind.cores for kind in of_gpu} == {24}
    assert {kind.gpu.type for kind in of_gpu if kind.gpu} == {"v100"}
    (cpu,) = [kind for kind in elm.nodes if kind.name in part(elm, "all.q").kinds]
    assert (cpu.count, cpu.cores, cpu.memory, cpu.gpu) == (2, 40, "190GiB", None)


def test_a_queue_is_a_partition(elm: Cluster) -> None:
    cpu, gpu, login = (part(elm, name) for name in ("all.q", "gpu.q", "login.q"))
    assert (cpu.max_time, gpu.max_time, login.max_time) == ("2d", "12h", None)
    assert (cpu.max_nodes, gpu.max_nodes, login.max_nodes) == (None, 1, 1)
    assert (cpu.max_cores_per_node, gpu.max_cores_per_node) == (40, 24)
    assert gpu.max_jobs == 500
    assert login.purpose == "interactive"
    assert login.user_lists == ("staff", "phd")
    assert "billing" in gpu.unknown


def test_how_a_request_is_written(elm: Cluster) -> None:
    assert elm.dialect.gpus == "-l gpu_{type}={count}"
    assert elm.dialect.cores == ""  # each queue has its own environments
    assert (elm.dialect.memory, elm.dialect.memory_is_counted) == ("core", True)
    assert elm.dialect.default_memory_per_core == "1GiB"
    assert elm.dialect.time_required
    environments = {one.name: one for one in part(elm, "all.q").parallel_environments}
    assert {name: one.rule for name, one in environments.items()} == {
        "smp": "one_node",
        "ib": "fill",
    }
    assert environments["smp"].max_cores == 999
    assert [one.name for one in part(elm, "gpu.q").parallel_environments] == ["smp"]


def test_quotas_are_read_rule_by_rule(elm: Cluster) -> None:
    staff, rest, host = elm.quotas
    assert {one.name for one in elm.quotas} == {"gpus_per_user"}
    gpu_kinds = set(part(elm, "gpu.q").kinds)
    assert (staff.users, staff.partitions) == (("@staff", "!eve"), ("gpu.q",))
    assert gpu_kinds <= set(staff.kinds)
    assert staff.per_node
    assert staff.limits == {"gpu:v100": 2, "cores": 20}
    assert (rest.projects, rest.environments) == (("!chem",), ("smp",))
    assert rest.partitions == ("all.q", "gpu.q")
    assert (rest.limits, rest.unread) == ({"cores": 16, "memory": 65536}, ("licence",))
    # g1 in either of its queues; a formula is not read.
    assert (len(host.kinds), host.limits, host.unread) == (1, {}, ("gpu_v100",))


def test_what_could_not_be_learnt_is_named(elm: Cluster) -> None:
    notes = " ".join(elm.notes)
    assert "verifier" in notes


def test_what_is_not_defined_is_not_reported() -> None:
    missing = ("-spl", "-srqsl")

    def few(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        if argv[1] in missing:
            return Completed(tuple(argv), 1, "", "none defined\n")
        done = answers(argv, timeout_s=timeout_s, repeat=repeat)
        text = done.stdout.replace("jsv_url                      script:", "jsv_url  none #")
        return msgspec.structs.replace(done, stdout=text.replace("gpu_v100=2(0 1)", "gpu_v100=x"))

    elm = grid_engine_cluster(few, environment={}, host="h", today=TODAY, name="elm")
    assert elm.dialect.cores == ""
    assert part(elm, "all.q").max_nodes == 1
    assert (part(elm, "all.q").parallel_environments, elm.quotas) == ((), ())
    # What does not read is not zero: the node is told without GPUs.
    bare = [kind for kind in elm.nodes if kind.name in part(elm, "gpu.q").kinds and not kind.gpu]
    assert [kind.count for kind in bare] == [1]


def test_a_queue_without_hosts_has_no_kinds() -> None:
    def empty(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        done = answers(argv, timeout_s=timeout_s, repeat=repeat)
        return msgspec.structs.replace(
            done, stdout=done.stdout.replace("hostlist              c1 c2", "hostlist  NONE")
        )

    elm = grid_engine_cluster(empty, environment={}, host="h", today=TODAY, name="elm")
    assert part(elm, "all.q").kinds == ()
    assert part(elm, "all.q").max_cores_per_node is None
