"""Check a job against Grid Engine's environments, quotas, user lists and projects. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.place import Case, memory_mib
from teho.planner.refusal import above, not_listed
from teho.planner.slots import (
    SlotRules,
    environments_for,
    environments_of,
    is_let_in,
    least_memory_of_hosts,
    needs_environment,
    project_of,
    slot_rules,
)
from teho.units import counted, format_mib

__all__ = ["environment_of", "grid_engine_refusals", "unknown_to_grid_engine"]

_QCONF = "`qconf`, read just now"
_STATES = {
    "DISABLED": "the queue starts no jobs",
    "SUSPENDED": "the jobs of the queue are paused",
}


def grid_engine_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the reasons why Grid Engine would never start the job there."""
    if not case.scheduler.has_slots:
        return
    yield from _state(case)
    yield from _lists(case)
    yield from _project(case)
    yield from _gpus_of_cores(case)
    yield from _environment(case)
    yield from _quotas(case)


def _state(case: Case) -> Iterator[Refusal]:
    if case.state != "UP":
        what = _STATES.get(case.state, "the queue may not start jobs")
        yield Refusal(
            kind="partition_state",
            sentence=f"{case.where} is {case.state} now: {what}",
            source="`qstat -f`, read just now",
        )


def _lists(case: Case) -> Iterator[Refusal]:
    partition = case.partition
    allowed, denied = partition.user_lists, partition.denied_user_lists
    if is_let_in(case.live, allowed, denied) is False:
        lists = f"{'s' if len(allowed) > 1 else ''} {', '.join(allowed)}"
        who = f"users in the user list{lists}" if allowed else "users"
        many = "s" if len(denied) > 1 else ""
        out = f" who are not in the user list{many} {', '.join(denied)}" if denied else ""
        yield Refusal(
            kind="user_list",
            sentence=f"only {who}{out} can use {case.where}, and you are not one of these users",
            source=partition.source,
        )


def _project(case: Case) -> Iterator[Refusal]:
    """Refuse a project that is not the user's, or that the queue does not accept."""
    partition, live = case.partition, case.live
    named = project_of(case.request, live)
    known = live is not None and live.associations is not None
    names = [one.account for one in (live.associations or () if live else ())]
    sentence = ""
    if known and named and named not in names:
        have = f"your projects: {', '.join(names)}" if names else "you have no project"
        sentence = f"you cannot use project {named!r} ({have})"
    elif known and not named and case.cluster.account.required:
        sentence = "the job names no project, and you have no default project"
    if sentence:
        instead = f"--account {names[0]}" if names else ""
        yield Refusal(kind="account", sentence=sentence, source=_QCONF, instead=instead)
        return
    if named is not None:  # otherwise `unknown_to_grid_engine` reports it
        lists = (partition.accounts, partition.denied_accounts)
        yield from not_listed(
            "account", case.where, "project", named, lists, names, partition.source
        )


def _gpus_of_cores(case: Case) -> Iterator[Refusal]:
    """Refuse a number of GPUs that is not a multiple of the cores, if GPUs are per core."""
    gpu, gpus, cores = case.kind.gpu, case.shape.gpus_per_node, case.shape.cores_per_node
    if gpu is None or not gpu.per_slot or not gpus or gpus % cores == 0:
        return
    yield Refusal(
        kind="gpus_of_cores",
        sentence=f"the job requests {counted(gpus, 'GPU')} and {counted(cores, 'core')}; "
        f"{case.where} counts GPUs per core, so the number of GPUs must be a multiple of the "
        "number of cores",
        source=case.kind.source,
        instead=f"--cpus {gpus * case.shape.nodes}",
    )


def _environment(case: Case) -> Iterator[Refusal]:
    partition, cores = case.partition, case.shape.cores_per_node
    if case.shape.nodes > 1:
        if partition.max_nodes != 1 and not case.has_option_for_nodes:  # else refused already
            title = case.cluster.title
            none = f"the cluster file of {title} has no option for several nodes"
            if case.cluster.dialect.several_nodes:
                none = f"{title} documents no option for GPUs on several nodes"
            yield Refusal(
                kind="one_node",
                sentence=f"the job requests {case.shape.nodes} nodes; {none}",
                source=partition.source,
                instead="--nodes 1" if case.request.nodes else "",
            )
        return
    rules = _rules(case)
    if not rules.needs_environment or rules.environment is not None:
        return
    own = list(environments_of(case))
    have = ", ".join(f"{one.name} ({_rule(one.rule, one.cores_per_node)})" for one in own)
    yield Refusal(
        kind="parallel_environment",
        sentence=f"the job requests {counted(cores, 'core')} on one node; "
        + (
            f"the parallel environments of {case.where} give other numbers of cores: {have}"
            if own
            else f"{case.where} has no parallel environment"
        ),
        source=partition.source,
        instead=_other_cores(case),
    )


def _rule(rule: str, cores: int | None) -> str:
    return {
        "one_node": "all on one node",
        "fill": "from one node after another",
        "spread": "from all nodes in turn",
        "fixed": f"{cores} on each node",
    }[rule]


def _other_cores(case: Case) -> str:
    """Return the next smaller possible number of cores, or the smallest; empty: none."""
    most = case.kind.cores_for_jobs
    for cores in (*range(case.shape.cores_per_node - 1, 0, -1), *range(2, most + 1)):
        if not needs_environment(case, cores) or environments_for(case, cores):
            return f"--cpus {cores}"
    return ""


def _quotas(case: Case) -> Iterator[Refusal]:
    shape, gpu = case.shape, case.kind.gpu
    requested = {"cores": shape.cores_per_node, "memory": shape.memory_mib or 0}
    if gpu:
        requested[f"gpu:{gpu.type}"] = shape.gpus_per_node
    for rule in _rules(case).rules:
        scope = "per node" if rule.per_node else "for all jobs together"
        for what, most in rule.limits.items():
            number = requested.get(what, 0)
            if number > most:
                limit = f"{_amount(what, most)} {scope} (resource quota {rule.name!r})"
                yield above("limit", _amount(what, number), limit, rule.source)


def _rules(case: Case) -> SlotRules:
    return slot_rules(case, case.shape.cores_per_node, case.shape.gpus_per_node)


def _amount(what: str, number: int) -> str:
    if what == "memory":
        return f"{format_mib(number)} of memory"
    return counted(number, "core" if what == "cores" else f"{what.removeprefix('gpu:')} GPU")


def _may_have_less_memory(case: Case) -> bool:
    """Return whether a node may be too small, because the scheduler allocates no memory."""
    cluster, wanted = case.cluster, case.shape.memory_mib
    if wanted is None or cluster.dialect.memory_is_counted is not None or cluster.dialect.cores:
        return False
    kinds = [kind for kind in cluster.nodes if kind.name in case.partition.kinds]
    return any(kind.memory and (memory_mib(kind.memory) or 0) < wanted for kind in kinds)


def _is_too_much_for_a_host(case: Case) -> bool:
    """Return whether a host has less than the job requests of what is counted for the whole job."""
    shape, gpu = case.shape, case.kind.gpu
    smallest_mib = least_memory_of_hosts(case, shape.cores_per_node)
    if smallest_mib is not None and (shape.memory_mib or 0) > smallest_mib:
        return True
    if gpu is None or gpu.per_slot or not shape.gpus_per_node:
        return False
    return any(
        one.gpu and one.gpu.type == gpu.type and (one.gpu.count or 0) < shape.gpus_per_node
        for one in case.cluster.nodes
        if one.name in case.partition.kinds
    )


def environment_of(case: Case) -> str:
    """Return the parallel environment to request; empty: none."""
    own = _rules(case).environment
    return own.name if own else ""


def unknown_to_grid_engine(case: Case) -> Iterator[str]:
    """Yield in a few words each rule that could refuse the job and is unknown here."""
    if not case.scheduler.has_slots:
        return
    partition, live = case.partition, case.live
    if partition.parallel_environments and (live is None or live.states is None):
        yield "whether the queue starts jobs now"
    if is_let_in(live, partition.user_lists, partition.denied_user_lists) is None:
        yield "whether the queue's user lists allow you to use it"
    if project_of(case.request, live) is None and (partition.accounts or partition.denied_accounts):
        yield "whether the queue accepts your default project"
    rules = _rules(case)
    own = rules.environment
    if own is not None and not rules.on_one_node:
        yield (
            "whether all cores are on one node: the parallel environment "
            f"{own.name!r} allocates cores {_rule(own.rule, None)}"
        )
    if own is not None and _is_too_much_for_a_host(case):
        yield (
            "whether the job ever starts: some hosts of the queue are smaller than others, and a "
            "parallel job that is too large for the smaller hosts may wait forever"
        )
    if _may_have_less_memory(case):
        yield (
            "whether the node has enough memory for the job: Grid Engine does not count memory here"
        )
    for name in rules.unsure:
        yield f"whether resource quota {name!r} applies to the job"
    for rule in rules.rules:
        for what in rule.unread:
            yield f"how much of resource {what!r} the job may use (resource quota {rule.name!r})"
