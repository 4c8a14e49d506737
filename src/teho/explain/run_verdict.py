"""The verdict on a run: the sentence at the top of its report."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.analysis import Analysis
from teho.explain.good_use import good_use, main_loss
from teho.explain.shared_thresholds import EVERY_RULE, GOOD_USE
from teho.explain.step import absent_hosts, ending, failed, silent_ranks
from teho.explain.totals import mean_of
from teho.explain.trial import trial_verdict
from teho.explain.wording import capital, counted, listed, ranks_on
from teho.model.document import VerdictSeverity
from teho.model.finding import Certainty, Finding, Severity
from teho.model.missing import Missing
from teho.model.run import Run, RunState
from teho.model.summary import Summary
from teho.units import format_duration

__all__ = ["verdict_of"]


def verdict_of(analysis: Analysis) -> tuple[str, VerdictSeverity]:
    """Return the sentence at the top of the report of a run, and its severity."""
    run, state, summary = analysis.run, analysis.state, analysis.summary
    hints, findings = analysis.hints, analysis.main_findings
    thresholds = analysis.policy.thresholds
    trial = trial_verdict(run, state, summary, findings)
    if trial is not None:
        return trial
    serious = [
        (finding.sentence + _CERTAINTY_WORDS.get(finding.certainty, ""), finding.severity)
        for finding in findings
        if finding.severity is not Severity.REMARK
    ]
    lost = _killed_words(run, state)
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
    # A remark on lost time may be wrong, but "no problems found" would not be true.
    remark = next((finding for finding in findings if _may_be_loss(finding)), None)
    of_gpu = next((one for one in findings if one.kind == "gpu_decides_speed"), None)
    if of_gpu is not None and remark is None:
        used = of_gpu.sentence.rstrip(".")
    if any(finding.kind == "job_too_short" for finding in findings):
        loss = (
            remark.sentence.rstrip(".") if remark else _where_time_went(run, summary, hints, of_gpu)
        )
        if of_gpu is not None and remark is None:
            return f"{used}. {_SHORT}", "unknown"
        if not loss or summary.elapsed_s < thresholds[EVERY_RULE]["lost_min_s"].value:
            return f"{used}, but the run was too short to judge.", "unknown"
        return f"{used}. {loss}. {_SHORT}", "unknown"
    absent = absent_hosts(run)
    if state is not RunState.RUNNING and absent:
        return f"{used}. {listed(absent)} left no recording.", "unknown"
    if run.end and failed(run.end):
        return f"{used}. The program failed: {ending(run.end)}.", "critical"
    is_good = good_use(summary, thresholds[GOOD_USE])
    if state is not RunState.FINISHED:
        return f"{used}. {_STATE_WORDS[state]}.", "good" if is_good else "unknown"
    if is_good and not remark:
        return f"{used}. No problems found.", "good"
    if remark:
        return f"{used}. {remark.sentence}", "unknown"
    loss = _where_time_went(run, summary, hints, of_gpu)
    others = [one for one in findings if one is not of_gpu]
    if others:
        rest = f" {counted([len(others)], 'remark')} below."
    else:
        rest = "" if of_gpu else " No known cause of lost time was found."
    return f"{used}.{f' {loss}.' if loss else ''}{rest}", "unknown"


def _where_time_went(
    run: Run, summary: Summary, hints: Sequence[Finding], of_gpu: Finding | None
) -> str:
    """Return the activity or the line that took most of the time, in one clause.

    Empty if the kernels of a GPU decide the speed: what the CPU did meanwhile does not change it.
    """
    if of_gpu is not None:
        return ""
    activity = next((one for one in hints if one.kind == "known_activity"), None)
    return activity.sentence.rstrip(".") if activity else main_loss(run, summary)


def _may_be_loss(finding: Finding) -> bool:
    return bool(finding.regain_percent) or finding.certainty is Certainty.POSSIBLE


_SHORT = "The run was too short to judge its use of cores and memory."
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


def _killed_words(run: Run, state: RunState) -> str:
    """Return that some tasks did not report their end; empty if all or none reported it."""
    silent = silent_ranks(run) if state is RunState.INTERRUPTED else {}
    ranks = [rank for some in silent.values() for rank in some]
    if run.step is None or not 0 < len(ranks) < run.step.task_count:
        return ""
    who = capital(ranks_on(ranks, silent))
    if len(ranks) == 1:
        return f"{who} was killed, or its node failed."
    nodes = "node" if len(silent) == 1 else "nodes"
    return f"{who} were killed, or their {nodes} failed."
