"""The digest of a period as a document: use, waste by kind, the best changes, people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec

from teho.model.digest import Amounts, Change, Digest, WasteOfKind
from teho.model.document import Document, Fact, Item, Table, VerdictSeverity
from teho.model.job import JobState
from teho.show.build.layout import column, document, listing, table
from teho.show.cells import plain, quantity
from teho.units import counted, format_count, format_duration, plural

__all__ = ["amounts_text", "digest_document"]

_PEOPLE = 10
_BLOCKED = (
    "The sums do not include the GPUs for which jobs without GPUs left no core: these GPUs were "
    "not allocated to any job."
)
_BIG_SHARE = 0.1
"""Teho's own choice: from this share of waste, the verdict is a warning."""


def digest_document(found: Digest) -> Document:
    """Lay out a digest."""
    return document(
        title=f"teho digest, {found.selection}",
        verdict=_verdict(found),
        verdict_severity=_severity(found),
        facts=tuple(_facts(found)),
        tables=tuple(_tables(found)),
        lists=(
            listing("changes", "What would save most", map(_change, found.changes), "first"),
            listing("unjudged", "Not judged", _unjudged(found)),
            listing("sources", "Thresholds and sources", map(_source, found.waste), "why"),
        ),
        notes=found.notes,
    )


def amounts_text(amounts: Amounts) -> str:
    """Write amounts for people: `12.4 GPU-hours, 30 core-hours (840 BU)`; empty for nothing."""
    parts = [
        f"{format_count(_rounded(value))} {plural(unit, _rounded(value))}{rest}"
        for value, unit, rest in (
            (amounts.gpu_hours, "GPU-hour", ""),
            (amounts.core_hours, "core-hour", ""),
            (amounts.gib_hours, "GiB-hour", " of memory"),
        )
        if _rounded(value)
    ]
    costs = ", ".join(_with_units(amounts.costs))
    return f"{', '.join(parts)} ({costs})" if parts and costs else ", ".join(parts)


def _with_units(costs: Mapping[str, float]) -> Iterator[str]:
    for unit, amount in costs.items():
        yield f"{format_count(_rounded(amount))} {unit}"


def _rounded(value: float) -> float:
    return float(f"{value:.3g}") if value < 1000 else float(round(value))


def _verdict(found: Digest) -> str:
    if not found.jobs:
        return f"No job of {found.selection} ran in this period."
    used = amounts_text(found.used) or "no time"
    wasted = amounts_text(found.wasted)
    head = f"{counted(found.jobs, 'job')} used {used}."
    if not wasted:
        return f"{head} The accounting shows no waste."
    return f"{head} Wasted: {wasted}."


def _severity(found: Digest) -> VerdictSeverity:
    shares = [
        wasted / used
        for wasted, used in (
            (found.wasted.gpu_hours, found.used.gpu_hours),
            (found.wasted.core_hours, found.used.core_hours),
        )
        if used
    ]
    return "warning" if max(shares, default=0.0) >= _BIG_SHARE else "remark"


def _facts(found: Digest) -> Iterator[Fact]:
    day = "%Y-%m-%d %H:%M"
    since, until = found.since.astimezone(), found.until.astimezone()
    yield Fact("period", "Period", f"{since:{day}} to {until:{day}}")
    yield Fact("whose", "Jobs of", plain(found.selection))
    for resource, label, unit in (
        ("gpu", "GPUs", "GPU-hours"),
        ("core", "Cores", "core-hours"),
        ("billing", "Billing", "billing-hours"),
    ):
        hours = partial(_hours, resource=resource)
        # If the cost is known, Slurm's own billing would be a second unit for the same.
        if hours(found.used) and not (resource == "billing" and found.used.costs):
            yield Fact(f"{resource}_hours", label, hours(found.used), unit, _wasted(found, hours))
    for number, (unit, used) in enumerate(found.used.costs.items()):
        note = _wasted(found, partial(_cost, unit=unit))
        yield Fact(f"cost_{number}", "" if number else "Cost", used, unit, note)
    if found.energy_j is not None:
        note = f"of {counted(found.energy_jobs, 'job')}, whole nodes"
        yield Fact("energy_j", "Energy", found.energy_j, "J", note)
    if found.wasted.energy_j:
        note = "only of jobs that Teho recorded"
        yield Fact("idle_energy_j", "Energy of idle GPUs", found.wasted.energy_j, "J", note)


def _wasted(found: Digest, part: Callable[[Amounts], float]) -> str:
    """Return the wasted share of a part of the amounts, and that of the period before."""
    now = _share(found.used, found.wasted, part)
    if now is None:
        return ""
    text = f"{now:.0f} % wasted"
    if found.used_before is None or found.wasted_before is None:
        return text
    before = _share(found.used_before, found.wasted_before, part)
    return text if before is None else f"{text}, {before:.0f} % in the period before"


def _share(used: Amounts, wasted: Amounts, part: Callable[[Amounts], float]) -> float | None:
    return 100 * part(wasted) / part(used) if part(used) else None


def _hours(amounts: Amounts, resource: str) -> float:
    return getattr(amounts, f"{resource}_hours") or 0.0


def _cost(amounts: Amounts, unit: str) -> float:
    return amounts.costs.get(unit, 0.0)


def _tables(found: Digest) -> Iterator[Table]:
    if found.waste:
        yield table(
            "waste", "Waste by kind", found.waste,
            column("kind", "Kind", lambda one: one.title),
            column("jobs", "Jobs", lambda one: one.jobs),
            column("gpu_hours", "GPU-hours", lambda one: one.amounts.gpu_hours or None, decimals=1),
            column("core_hours", "Core-hours", lambda one: one.amounts.core_hours or None,
                   decimals=1),
            column("gib_hours", "GiB-hours", lambda one: one.amounts.gib_hours or None, decimals=0),
            column("cost", "Cost", lambda one: ", ".join(_with_units(one.amounts.costs)) or None),
            column("billing", "Billing-hours", lambda one: one.amounts.billing_hours or None,
                   decimals=1, aside=True),
            column("energy", "Energy", lambda one: one.amounts.energy_j or None, unit="J",
                   aside=True),
            column("examples", "Jobs with the most", lambda one: ", ".join(one.examples[:2]),
                   aside=True),
            only_known=True,
            note=_BLOCKED if any(one.kind == "gpus_blocked" for one in found.waste) else "",
        )  # fmt: skip
    if len(found.people) > 1:
        yield _people_table(found)
    yield msgspec.structs.replace(
        table(
            "endings", "How the jobs ended", found.endings,
            column("state", "State", lambda one: _state(one.state)),
            column("jobs", "Jobs", lambda one: one.jobs),
            column("gpu_hours", "GPU-hours", lambda one: one.used.gpu_hours or None, decimals=1),
            column("core_hours", "Core-hours", lambda one: one.used.core_hours or None, decimals=1),
        ),
        level="why",
    )  # fmt: skip


_RUNS = frozenset({JobState.RUNNING, JobState.COMPLETING, JobState.SUSPENDED})


def _state(state: JobState) -> str:
    """Return a state in words; a run that has used something and waits was queued again."""
    if state in {JobState.PENDING, JobState.HELD}:
        return "queued again"
    return str(state.value).replace("_", " ")


def _people_table(found: Digest) -> Table:
    made = table(
        "people", "By user", found.people,
        column("user", "User", lambda one: plain(one.user) or "not known"),
        column("jobs", "Jobs", lambda one: one.jobs),
        column("gpu_hours", "GPU-hours", lambda one: one.used.gpu_hours or None, decimals=1),
        column("gpu_wasted", "wasted", lambda one: one.wasted.gpu_hours or None, decimals=1),
        column("core_hours", "Core-hours", lambda one: one.used.core_hours or None, decimals=1),
        column("core_wasted", "wasted", lambda one: one.wasted.core_hours or None, decimals=1),
        only_known=True,
    )  # fmt: skip
    left = len(found.people) - _PEOPLE
    if left <= 0:
        return made
    return msgspec.structs.replace(
        made, shown=tuple(range(_PEOPLE)), rest=f"and {counted(left, 'more user')}"
    )


def _change(change: Change) -> Item:
    return Item(
        text=f"{plain(change.sentence)} {change.action} This would have saved "
        f"{amounts_text(change.saves)}."
    )


def _unjudged(found: Digest) -> Iterator[str]:
    """Yield what could not be judged: it does not count as waste."""
    if found.unjudged_gpu_hours:
        share = 100 * found.unjudged_gpu_hours / found.used.gpu_hours
        yield (
            f"{format_count(_rounded(found.unjudged_gpu_hours))} GPU-hours ({share:.0f} %): the "
            "accounting does not have the mean use of these GPUs. A site that runs Jobstats stores "
            "it, and `teho always on` records it."
        )
    if found.unjudged_core_hours:
        yield (
            f"{format_count(_rounded(found.unjudged_core_hours))} core-hours: the accounting does "
            "not have the CPU time of these jobs."
        )
    running = sum(one.jobs for one in found.endings if one.state in _RUNS)
    if running:
        yield f"{counted(running, 'job')} did not end in this period."
    if found.used.costs and found.cost_unknown_jobs:
        many = counted(found.cost_unknown_jobs, "job")
        yield f"The cost of {many} is not known, and is not in the sum."
    if found.short_jobs:
        limit = format_duration(found.short_below_s)
        yield (
            f"{counted(found.short_jobs, 'job')} ran for less than {limit}, which is too short "
            "to judge."
        )
    yield (
        "GPUs that were used only at first: the accounting has no values over time. Teho finds "
        "them in jobs that it recorded; `teho always on` records all jobs."
    )


def _source(kind: WasteOfKind) -> Item:
    limit = quantity(kind.threshold.value, kind.threshold.unit)
    return Item(
        lead=kind.title,
        text=f"threshold {limit} (rule {kind.rule}). Figures: {kind.source}.",
        details=(kind.threshold.source,),
    )
