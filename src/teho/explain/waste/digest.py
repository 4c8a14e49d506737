"""Sums over the jobs of a period: what they used and wasted, and which changes would save most."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Union

from teho.explain.policy import Policy
from teho.explain.shared_thresholds import DIGEST
from teho.explain.waste.cost import Costs, JobCost
from teho.explain.waste.kind import (
    CORES_OF_A_GPU,
    GIB_OF_A_CORE,
    Kind,
    Limits,
    Waste,
    is_short,
    limits_of,
    threshold_of,
)
from teho.explain.waste.kinds import KINDS, waste_of
from teho.explain.waste.recorded import Recordings
from teho.explain.waste.use import JobUse, use_of
from teho.model.accounted import AccountedJob
from teho.model.digest import Amounts, Change, Digest, Ending, Person, WasteOfKind
from teho.model.job import JobState
from teho.model.member import GpuNodes
from teho.patterns import lazy_pattern
from teho.schedulers.registry import scheduler_or_none

__all__ = ["digest_of"]

_EXAMPLES = 5
_CHANGES = 3
_FAILS = "fails_at_start"
_FAILS_TITLE = "Jobs that failed in their first minute, again and again"
_JOBSTATS = (
    "Teho's recordings; for other jobs, the summary of Jobstats in Slurm's field AdminComment, "
    "which rounds the mean use of a GPU to 0.1 %"
)
_SOURCES = {
    "gpu": _JOBSTATS,
    "gpu_processes_gone": "Teho's recordings",
    "gpu_used_only_at_first": "Teho's recordings",
    "core": "CPU time and wall time of the accounting",
    "memory": "the sum of the memory peaks of all tasks, in the accounting",
    "time": "wall time and time limit of the accounting",
    "blocked": "allocated cores of the accounting, and the nodes that the scheduler lists now",
}


def digest_of(
    jobs: Iterable[AccountedJob],
    policy: Policy,
    *,
    since: datetime,
    until: datetime,
    selection: str,
    recordings: Recordings | None = None,
    gpu_nodes: GpuNodes | None = None,
    costs: Costs | None = None,
    notes: Sequence[str] = (),
) -> Digest:
    """Add up the jobs of a period, and of the period of the same length before it.

    A job belongs to the period in which it ended. A job that has not ended belongs to the last
    one, with its use until now.

    Args:
        jobs: each run of each job, from twice the length of the period.
        policy: the thresholds of the rules.
        since: beginning of the period.
        until: its end.
        selection: whose jobs these are, in words.
        recordings: the recordings of Teho.
        gpu_nodes: the nodes of partitions in which every node has GPUs; None: not known.
        costs: computes what the jobs cost. Several digests can share it; None: a new one.
        notes: sentences about what is missing.
    """
    limits, costs = limits_of(policy), costs or Costs()
    now = _Period(limits, recordings, gpu_nodes, costs)
    before = _Period(limits, recordings, gpu_nodes, costs)
    start = since - (until - since)
    for job in jobs:
        if job.elapsed_s is None or job.started_at is None:
            continue  # it has used nothing yet
        end = job.ended_at or until
        if since <= end <= until + timedelta(minutes=5):
            now.add(job)
        elif start <= end < since:
            before.add(job)
    before.failures(policy)
    return now.digest(policy, since, until, selection, notes, before if before.jobs else None)


class _Sum:
    """Adds up amounts; fast, because it is used for each job."""

    def __init__(self) -> None:
        self.jobs = 0
        self.gpu_hours = self.core_hours = self.gib_hours = self.billing_hours = 0.0
        self._billed = self._unbilled = 0
        self._costs: dict[str, float] = {}
        self._energy_j: float | None = None

    def add(
        self,
        amounts: Union[Amounts, JobUse],
        cost: JobCost | None,
        gib_hours: float = 0.0,
        energy_j: float | None = None,
    ) -> None:
        self.jobs += 1
        if cost is not None and cost.unit:
            self._costs[cost.unit] = self._costs.get(cost.unit, 0.0) + cost.amount
        if energy_j is not None:
            self._energy_j = energy_j + (self._energy_j or 0.0)
        self.gpu_hours += amounts.gpu_hours
        self.core_hours += amounts.core_hours
        self.gib_hours += gib_hours
        billing = amounts.billing_hours
        if billing is not None:
            self.billing_hours += billing
            self._billed += 1
        elif amounts.gpu_hours or amounts.core_hours:
            self._unbilled += 1  # of memory and time, the part of the billing is not known

    @property
    def weight(self) -> float:
        """Core-hours that count as much."""
        return self.gpu_hours * CORES_OF_A_GPU + self.core_hours + self.gib_hours / GIB_OF_A_CORE

    def amounts(self) -> Amounts:
        return Amounts(
            gpu_hours=self.gpu_hours,
            core_hours=self.core_hours,
            gib_hours=self.gib_hours,
            billing_hours=self.billing_hours if self._billed and not self._unbilled else None,
            costs=dict(sorted(self._costs.items())),
            energy_j=self._energy_j,
        )


def _wasted_cost(use: JobUse, cost: JobCost | None, waste: Waste) -> JobCost | None:
    """Return the part of a job's cost that the wasted GPUs, or else the wasted cores, have.

    None: not known. The GPUs of `gpus_blocked` have no part: the job did not have them.
    """
    if cost is None or waste.kind.resource not in ("gpu", "core"):
        return None
    if use.gpus:
        share = waste.amounts.gpu_hours / use.gpu_hours
    else:
        share = waste.amounts.core_hours / use.core_hours
    return JobCost(share * cost.amount, cost.unit)


class _Short(NamedTuple):
    """A job that failed early."""

    use: JobUse
    cost: JobCost | None


class _Group:
    """Jobs of one user with the same name, size and kind of waste."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.sum = _Sum()
        self.needed: list[float] = []
        self.newest: JobUse | None = None

    def add(self, use: JobUse, waste: Waste, cost: JobCost | None) -> None:
        self.sum.add(waste.amounts, cost, waste.amounts.gib_hours, waste.amounts.energy_j)
        self.needed.append(waste.needed)
        ended_at = use.job.ended_at
        if self.newest is None or (ended_at and ended_at > (self.newest.job.ended_at or ended_at)):
            self.newest = use


class _Period:
    """The jobs of one period."""

    def __init__(
        self,
        limits: Limits,
        recordings: Recordings | None,
        gpu_nodes: GpuNodes | None,
        costs: Costs,
    ) -> None:
        self._limits = limits
        self._recordings = recordings
        self._gpu_nodes = gpu_nodes
        self.jobs = 0
        self.used, self.wasted = _Sum(), _Sum()
        self._costs = costs
        self._cost_unknown_jobs = 0
        self._energy_j, self._energy_jobs = 0.0, 0
        self._kinds: dict[str, _Sum] = defaultdict(_Sum)
        self._worst: dict[str, list[tuple[float, str]]] = defaultdict(list)
        self._groups: dict[tuple[str, str, str, int, int, float], _Group] = {}
        self._endings: dict[JobState, _Sum] = defaultdict(_Sum)
        self._people: dict[str, tuple[_Sum, _Sum]] = defaultdict(lambda: (_Sum(), _Sum()))
        self._unjudged_gpu_hours = self._unjudged_core_hours = 0.0
        self._short = 0
        self._failed: dict[tuple[str, str], list[_Short]] = defaultdict(list)

    def add(self, job: AccountedJob) -> None:
        use = use_of(job, self._recordings, self._gpu_nodes)
        self.jobs += 1
        cost = self._costs.of(job)
        if cost is None:
            self._cost_unknown_jobs += 1
        own_used, own_wasted = self._people[job.user]
        for total in (self.used, self._endings[job.state], own_used):
            total.add(use, cost)
        if job.energy_j is not None:
            self._energy_j += job.energy_j
            self._energy_jobs += 1
        if is_short(use, self._limits):
            self._short += 1
            if job.state is JobState.FAILED:
                self._failed[job.user, _stem(job.name)].append(_Short(use, cost))
            return
        if not job.state.ended:
            return  # it is judged after its end
        if use.gpus and not use.gpu_means:
            self._unjudged_gpu_hours += use.gpu_hours
        if not use.gpus and use.cores_used is None:
            self._unjudged_core_hours += use.core_hours
        for waste in waste_of(use, self._limits):
            of_waste = _wasted_cost(use, cost, waste)
            self._count(use, waste, of_waste)
            if waste.kind.resource == "blocked":
                continue  # the use of the jobs does not have these GPUs
            for total in (self.wasted, own_wasted):
                total.add(waste.amounts, of_waste, waste.amounts.gib_hours, waste.amounts.energy_j)

    def _count(self, use: JobUse, waste: Waste, cost: JobCost | None) -> None:
        kind, amounts, job = waste.kind, waste.amounts, use.job
        self._kinds[kind.key].add(amounts, cost, amounts.gib_hours, amounts.energy_j)
        size = amounts.gpu_hours * CORES_OF_A_GPU + amounts.core_hours + amounts.gib_hours
        self._worst[kind.key].append((size, job.id))
        # Jobs that need different numbers of GPUs need different advice.
        needed = waste.needed if kind.key == "gpu_never_used" else 0.0
        key = kind.key, job.user, _stem(job.name), use.gpus, use.cores, needed
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(kind)
        group.add(use, waste, cost)

    def digest(
        self,
        policy: Policy,
        since: datetime,
        until: datetime,
        selection: str,
        notes: Sequence[str],
        before: _Period | None,
    ) -> Digest:
        failures = self.failures(policy)
        people = [
            Person(user=user, jobs=used.jobs, used=used.amounts(), wasted=wasted.amounts())
            for user, (used, wasted) in sorted(
                self._people.items(), key=lambda pair: (-pair[1][1].weight, -pair[1][0].weight)
            )
        ]
        return Digest(
            since=since,
            until=until,
            selection=selection,
            jobs=self.jobs,
            used=self.used.amounts(),
            cost_unknown_jobs=self._cost_unknown_jobs,
            energy_j=self._energy_j if self._energy_jobs else None,
            energy_jobs=self._energy_jobs,
            wasted=self.wasted.amounts(),
            waste=(*self._waste(policy), *failures),
            unjudged_gpu_hours=self._unjudged_gpu_hours,
            unjudged_core_hours=self._unjudged_core_hours,
            short_jobs=self._short,
            short_below_s=self._limits.elapsed_min_s,
            endings=tuple(
                Ending(state=state, jobs=found.jobs, used=found.amounts())
                for state, found in sorted(self._endings.items(), key=lambda pair: -pair[1].jobs)
            ),
            people=tuple(people),
            changes=tuple(self._changes()),
            used_before=before.used.amounts() if before else None,
            wasted_before=before.wasted.amounts() if before else None,
            notes=tuple(notes),
        )

    def _waste(self, policy: Policy) -> Iterator[WasteOfKind]:
        kinds = [kind for kind in KINDS if kind.key in self._kinds]
        for kind in sorted(kinds, key=lambda kind: -self._kinds[kind.key].weight):
            found = self._kinds[kind.key]
            worst = sorted(self._worst[kind.key], reverse=True)[:_EXAMPLES]
            yield WasteOfKind(
                kind=kind.key,
                title=kind.title,
                rule=kind.rule,
                threshold=threshold_of(kind, policy),
                source=_SOURCES.get(kind.key) or _SOURCES[kind.resource],
                jobs=found.jobs,
                amounts=found.amounts(),
                examples=tuple(job_id for _, job_id in worst),
            )

    def failures(self, policy: Policy) -> list[WasteOfKind]:
        """Count the jobs of the same name that failed at their start several times; call once."""
        limits = policy.thresholds[DIGEST]
        found = _Sum()
        examples: list[str] = []
        for (user, _), uses in self._failed.items():
            within_s = limits["fails_within_s"].value
            early = [one for one in uses if one.use.hours * 3600 < within_s]
            if len(early) < limits["fails_min"].value:
                continue
            for use, cost in early:
                for total in (found, self.wasted, self._people[user][1]):
                    total.add(use, cost)
            examples += [use.job.id for use, _ in early]
        if not found.jobs:
            return []
        return [
            WasteOfKind(
                kind=_FAILS,
                title=_FAILS_TITLE,
                rule=DIGEST,
                threshold=limits["fails_min"],
                source="state and wall time of the accounting",
                jobs=found.jobs,
                amounts=found.amounts(),
                examples=tuple(examples[:_EXAMPLES]),
            )
        ]

    def _changes(self) -> Iterator[Change]:
        groups = [
            (key, group) for key, group in self._groups.items() if group.sum.weight and group.newest
        ]
        groups.sort(key=lambda pair: -pair[1].sum.weight)
        several = len({user for _, user, *_ in self._groups}) > 1
        for (_, user, name, *_), group in groups[:_CHANGES]:
            assert group.newest is not None  # noqa: S101 - the list has only such groups
            advice = scheduler_or_none(group.newest.job.scheduler).advice
            called = f"named {name}" if name else ""
            if several and user:
                called = f"{called} of {user}".strip()
            yield Change(
                sentence=group.kind.sentence(group.sum.jobs, called),
                action=group.kind.advise(advice, group.needed, group.newest),
                kind=group.kind.key,
                jobs=group.sum.jobs,
                saves=group.sum.amounts(),
            )


_NUMBERS = lazy_pattern(r"\d+")


def _stem(name: str) -> str:
    """Return a name with its numbers replaced, because many scripts number their jobs."""
    return _NUMBERS.sub("N", name)
