"""From a run's figures and findings to its `Report`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import msgspec

from teho.config.electricity import Electricity
from teho.explain.good_use import good_use, main_loss
from teho.explain.pace import recent_pace
from teho.explain.places import known_part
from teho.explain.policy import Policy, load_policy
from teho.explain.roofline import rooflines_of
from teho.explain.shared_thresholds import GOOD_USE, OUTLIERS
from teho.explain.step import absent_hosts, ending, failed, first_failure, offset_s
from teho.explain.totals import cores_used, mean_of
from teho.explain.trial import trial_verdict, without_expected
from teho.explain.wording import counted, listed
from teho.model.document import Fact, Item, Listing, Report, Table, VerdictSeverity
from teho.model.finding import Abstention, Certainty, Finding, Severity
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.model.summary import Figure, NodeSummary, Summary
from teho.model.watched import WatchedProcess
from teho.observe.uninstrumented import is_about_probe
from teho.show.build.report.activity import activity_facts
from teho.show.build.report.bill import bill_facts, bill_if_job
from teho.show.build.report.energy import energy_facts
from teho.show.build.report.native import native_tables
from teho.show.build.report.plots import heat_map_of, plots_of
from teho.show.build.report.profiled import profiled_commands, profiled_notes
from teho.show.build.report.roofline import rooflines_view
from teho.show.build.report.step import clock_notes, ended_words, gaps, killed_words, node_count
from teho.show.build.report.tables import tables_of
from teho.show.build.report.time import time_tables
from teho.units import format_bytes, format_duration
from teho.version import __version__

__all__ = ["build_report"]


def build_report(
    run: Run,
    state: RunState,
    summary: Summary,
    *,
    findings: Sequence[Finding] = (),
    abstentions: Sequence[Abstention] = (),
    problems: Sequence[str] = (),
    plots: bool = True,
    policy: Policy | None = None,
    electricity: Electricity | None = None,
    processes: Sequence[WatchedProcess] = (),
) -> Report:
    """Lay out the report on a run.

    Args:
        run: the description of the recording.
        state: whether the run goes on, has finished or was interrupted.
        summary: its figures.
        findings: findings of the rules, most important first.
        abstentions: rules that could not judge.
        problems: sentences about rows that could not be read.
        plots: whether to include every metric over time; text does not need them.
        policy: the thresholds of outliers in tables; None: the shipped ones.
        electricity: price and carbon emission of a kWh; None: not known.
        processes: what the probe recorded of Python processes.
    """
    policy = policy or load_policy()
    hints = [finding for finding in findings if finding.severity is Severity.HINT]
    findings = [finding for finding in findings if finding.severity is not Severity.HINT]
    verdict, severity = _verdict(run, state, summary, findings, hints, policy)
    rooflines, unplaced = rooflines_of(run, summary, policy)
    billed = bill_if_job(run, summary)
    return Report(
        title=run.name or run.id,
        run_id=run.id,
        name=run.name,
        command=shlex.join(run.command),
        state=state.value,
        verdict=verdict,
        verdict_severity=severity,
        facts=(
            *_facts(run, state, summary, electricity or Electricity()),
            *bill_facts(billed, state),
        ),
        tables=(
            *time_tables(summary.program, len(processes), summary.elapsed_s),
            *native_tables(run),
            *map(_leveled, tables_of(run, state, summary, policy.thresholds[OUTLIERS])),
        ),
        findings=without_expected(run, findings),
        lists=_hints(hints),
        abstentions=(*abstentions, *([unplaced] if unplaced else [])),
        # Without the probe, the report has no table of the time: the reader must know why.
        troubles=(
            *gaps(run, state, summary),
            *_troubles(run, problems),
            *_notes(run, about_probe=True),
        ),
        notes=(
            *clock_notes(run),
            *_notes(run, about_probe=False),
            *(billed.notes if billed else ()),
            *profiled_notes(processes),
        ),
        commands=tuple(profiled_commands(run.id, processes)),
        plots=tuple(plots_of(summary)) if plots else (),
        heat_map=heat_map_of(summary) if plots else None,
        rooflines=rooflines_view(rooflines, len(summary.nodes)),
        teho_version=__version__,
    )


_PACE_CHANGE_PERCENT = 5
"""Smaller changes of the pace are not shown: steps are never all equally long."""
_IN_FACTS = frozenset({"cpus", "memory", "io"})
"""Tables that say little more than the facts if they have one row."""
_IN_DETAIL = frozenset({"gpu_energy", "node_energy"})
"""Tables whose sum is among the facts."""


def _leveled(table: Table) -> Table:
    is_said = table.key in _IN_DETAIL or (table.key in _IN_FACTS and len(table.rows) == 1)
    return msgspec.structs.replace(table, level="why") if is_said else table


# Verdict


def _hints(hints: Sequence[Finding]) -> tuple[Listing, ...]:
    if not hints:
        return ()
    items = tuple(Item(text=f"{hint.sentence} {hint.action}") for hint in hints)
    return (Listing(key="hints", title="Hints", items=items, level="why"),)


def _verdict(
    run: Run,
    state: RunState,
    summary: Summary,
    findings: Sequence[Finding],
    hints: Sequence[Finding],
    policy: Policy,
) -> tuple[str, VerdictSeverity]:
    trial = trial_verdict(run, state, summary, findings)
    if trial is not None:
        return trial
    serious = [
        (finding.sentence + _CERTAINTY_WORDS.get(finding.certainty, ""), finding.severity)
        for finding in findings
        if finding.severity is not Severity.REMARK
    ]
    lost = killed_words(run, state)
    if lost and (not serious or serious[0][1] is not Severity.CRITICAL):
        serious.insert(0, (lost, Severity.CRITICAL))
    if serious:
        more = len(serious) - 1
        also = f" {more} more finding{'s' if more > 1 else ''} below." if more else ""
        return serious[0][0] + also, serious[0][1].value
    used = _use(summary)
    if used is None:
        reason = "the recording has no data"
        if run.end and run.nodes:
            reason = "the run was too short to be sampled"
        return f"Not judged: {reason}.", "unknown"
    too_short = any(finding.kind == "job_too_short" for finding in findings)
    if too_short:
        return f"{used}, but the run was too short to judge.", "unknown"
    absent = absent_hosts(run)
    if state is not RunState.RUNNING and absent:
        return f"{used}. {listed(absent)} left no recording.", "unknown"
    if run.end and failed(run.end):
        return f"{used}. The program failed: {ending(run.end)}.", "critical"
    is_good = good_use(summary, policy.thresholds[GOOD_USE])
    if state is not RunState.FINISHED:
        return f"{used}. {_STATE_WORDS[state]}.", "good" if is_good else "unknown"
    # A remark on lost time is no problem for sure, but "no problems found" would not be true.
    remark = next((finding for finding in findings if _may_be_loss(finding)), None)
    if is_good and not remark:
        return f"{used}. No problems found.", "good"
    if remark:
        return f"{used}. {remark.sentence}", "unknown"
    loss = hints[0].sentence.rstrip(".") if hints else main_loss(run, summary)
    rest = (
        f"{counted([len(findings)], 'remark')} below"
        if findings
        else "No known cause of lost time was found"
    )
    return f"{used}.{f' {loss}.' if loss else ''} {rest}.", "unknown"


def _may_be_loss(finding: Finding) -> bool:
    return bool(finding.regain_percent) or finding.certainty is Certainty.POSSIBLE


_CERTAINTY_WORDS = {Certainty.POSSIBLE: " This finding is possible, but not certain."}
_STATE_WORDS = {
    RunState.RUNNING: "The program is still running",
    RunState.INTERRUPTED: "The recording was cut off",
    RunState.FINISHED: "Finished",
}


def _use(summary: Summary) -> str | None:
    """Return in one clause what the run used; None without samples."""
    time = f"(run time {format_duration(summary.elapsed_s)})"
    several = len(summary.gpus) > 1
    who = f"The {len(summary.gpus)} GPUs" if several else "The GPU"
    busy = mean_of(summary.gpus, "gpu_busy_percent")
    if isinstance(busy, float):
        return f"{who} {'were' if several else 'was'} busy {busy:.0f} % of the time {time}"
    active = mean_of(summary.gpus, "gpu_sm_active_percent")
    if isinstance(active, float):  # MIG instances have only this metric
        its = "their" if several else "its"
        return f"{who} used {active:.0f} % of {its} multiprocessors {time}"
    nodes = [node for node in summary.nodes if not isinstance(node.cpu_cores_used, Missing)]
    if not nodes:
        return None
    used = sum(node.cpu_cores_used for node in nodes if isinstance(node.cpu_cores_used, float))
    cores = sum(node.cores for node in nodes)
    return f"The program kept {used:.1f} of {cores} cores busy {time}"


# Facts


def _facts(run: Run, state: RunState, summary: Summary, electricity: Electricity) -> Iterable[Fact]:
    yield Fact("elapsed_s", "Time", summary.elapsed_s, "s")
    yield Fact("ended", "Ended", _ending(run, state))
    if run.imported:
        tools = " and ".join(run.imported.tools)
        yield Fact("imported", "Log", f"{tools}, {listed(run.imported.files)}")
    yield from _job_facts(run)
    cores = sum(node.cores for node in summary.nodes)
    nodes = node_count(run)
    if nodes > 1:
        recorded = len(run.nodes)
        yield Fact(
            "nodes", "Nodes", nodes, note="" if recorded == nodes else f"{recorded} recorded"
        )
    if run.step and run.has_tasks:
        yield Fact("task_count", "Tasks", run.step.task_count)
    yield Fact(
        "cores_used", "Cores used", cores_used(run, summary), note=f"of {cores:,}" if cores else ""
    )
    peak, limit = _memory(summary)
    note = "" if isinstance(limit, Missing) else f"of {format_bytes(limit)}"
    yield Fact("memory_peak_bytes", "Memory", peak, "bytes", note)
    yield from _pace_facts(state, summary)
    if summary.gpus:
        yield Fact("gpu_count", "GPUs", len(summary.gpus))
        yield from _gpu_facts(run, state, summary, electricity)
    yield from _accounting_facts(run, state, summary, limit)


def _accounting_facts(run: Run, state: RunState, summary: Summary, limit: Figure) -> Iterable[Fact]:
    """Yield facts that only `seff` and programs show."""
    cores = sum(node.cores for node in summary.nodes)
    yield Fact("state_words", "State", _accounting_state(run, state), aside=True)
    yield Fact("node_count", "Nodes", node_count(run), aside=True)
    if cores:
        yield Fact("cores_per_node", "Cores per node", cores // len(summary.nodes), aside=True)
        yield Fact(
            "core_walltime_s", "Core time allocated", cores * summary.elapsed_s, "s", aside=True
        )
    yield Fact("cpu_used_s", "CPU time used", summary.cpu_s, "s", aside=True)
    yield Fact("memory_limit_bytes", "Memory limit", limit, "bytes", aside=True)


def _pace_facts(state: RunState, summary: Summary) -> Iterable[Fact]:
    """Yield the step rate of the process that ran longest, if it made steps."""
    if not summary.program:
        return
    process = summary.program.mains[0].process
    progress = process.progress
    if not progress or not (pace := progress[-1].steps_per_s):
        return
    yield Fact("steps_per_s", "Pace", pace, "steps/s", f"over {progress[-1].steps:,} steps")
    recent = recent_pace(process)
    if state is RunState.RUNNING and recent is not None:
        change = 100 * (recent / pace - 1)
        note = f"{change:+.0f} %" if abs(change) >= _PACE_CHANGE_PERCENT else ""
        yield Fact("steps_per_s_now", "Pace of the last minute", recent, "steps/s", note)


def _gpu_facts(
    run: Run, state: RunState, summary: Summary, electricity: Electricity
) -> Iterable[Fact]:
    gpus = summary.gpus
    seen = sum(known_part(gpu.stats.get("gpu_busy_percent"), "mean") is not None for gpu in gpus)
    note = f"{seen} of {len(gpus)} GPUs" if 0 < seen < len(gpus) else ""
    yield Fact("gpu_busy_percent", "GPU busy", mean_of(gpus, "gpu_busy_percent"), "%", note)
    yield from activity_facts(summary)
    yield from energy_facts(run, state, summary, electricity)


def _job_facts(run: Run) -> Iterable[Fact]:
    allocations = [node.allocation for node in run.nodes if node.allocation.job_id]
    if not allocations:
        return
    first = allocations[0]
    yield Fact("job_id", "Job", first.job_id)
    if first.cluster:
        yield Fact("cluster", "Cluster", first.cluster)
    if first.partition:
        yield Fact("partition", "Partition", first.partition)


def _ending(run: Run, state: RunState) -> str:
    if run.step and any(task.end for task in run.tasks):
        return ended_words(run, run.step, state)
    if run.end is None:
        if state is RunState.RUNNING:
            return "still running"
        by_job = "ended with the job" if run.unasked else "was cut off"
        return f"not known, the recorder {by_job}"
    return ending(run.end)


def _accounting_state(run: Run, state: RunState) -> str:
    """Return the state in the words of Slurm's accounting."""
    end = run.end or first_failure(run)
    if end is None or state is RunState.RUNNING:
        return "RUNNING" if state is RunState.RUNNING else "UNKNOWN"
    if end.exit_code is None and end.signal is None:
        return (end.job_state or "unknown").upper()
    if end.signal is not None:
        return f"{'FAILED' if failed(end) else 'CANCELLED'} (signal {end.signal})"
    return f"{'FAILED' if failed(end) else 'COMPLETED'} (exit code {end.exit_code})"


def _memory(summary: Summary) -> tuple[Figure, Figure]:
    """Return the memory peak and limit of the node that came nearest to its limit."""
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    nodes = [node for node in summary.nodes if not isinstance(node.memory_peak_bytes, Missing)]
    if not nodes:
        if not summary.nodes:
            return nothing, nothing
        return summary.nodes[0].memory_peak_bytes, summary.nodes[0].memory_limit_bytes
    fullest = max(nodes, key=_share_of_memory)
    return fullest.memory_peak_bytes, fullest.memory_limit_bytes


def _share_of_memory(node: NodeSummary) -> float:
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing):
        return 0.0
    return peak if isinstance(limit, Missing) else peak / limit


# Notes


def _troubles(run: Run, problems: Sequence[str]) -> Iterable[str]:
    offsets_s = {node.name: offset_s(run, node) for node in run.nodes}
    after: dict[str, float] = {}
    places: dict[str, list[str]] = {}
    parts = (
        *((node.name, node.troubles) for node in run.nodes),
        *((task.node, task.troubles) for task in run.tasks),
        ("", run.troubles),
    )
    for name, troubles in parts:
        for trouble in troubles:
            # The recorder and the supervisor both report it, in case one of them is killed.
            after.setdefault(trouble.what, max(0.0, trouble.elapsed_s + offsets_s.get(name, 0.0)))
            places.setdefault(trouble.what, []).extend([name] if name else [])
    for what, after_s in after.items():
        yield f"{_prefix(run, places[what])}After {format_duration(after_s)}: {what}."
    yield from dict.fromkeys(problems)


def _notes(run: Run, *, about_probe: bool) -> Iterable[str]:
    places: dict[str, list[str]] = {}
    for node in run.nodes:
        for note in (*node.allocation.notes, *node.notes):
            if is_about_probe(note) == about_probe:
                places.setdefault(note, []).append(node.name)
    for note, names in places.items():
        yield f"{_prefix(run, names)}{note}"


def _prefix(run: Run, names: Sequence[str]) -> str:
    """Return the names of the nodes that a sentence is about; empty if it is about all."""
    unique = list(dict.fromkeys(names))
    return f"{listed(unique)}: " if 0 < len(unique) < len(run.nodes) else ""
