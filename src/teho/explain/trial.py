"""Judge a trial, the short run before a long job: may the long job be submitted?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from teho.explain.step import absent_hosts, ending, failed, first_failure
from teho.explain.wording import listed
from teho.model.finding import Finding, Severity
from teho.model.missing import Missing
from teho.model.run import TRIAL_TAG, Run, RunState
from teho.model.summary import GpuSummary, Stat, Summary
from teho.units import counted

__all__ = ["trial_verdict", "without_expected"]

_AGAINST = frozenset({"memory_near_limit", "gpu_memory_full"})
"""Warnings that end a long job later: its memory only grows."""
_EXPECTED = frozenset({"job_too_short", "time_overasked"})
"""Findings that each trial has, because it is short."""
_MAY_GO = "You can submit the long job"


def without_expected(run: Run, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings of a run; of a trial, without those that say that it was short."""
    return tuple(one for one in findings if TRIAL_TAG not in run.tags or one.kind not in _EXPECTED)


def trial_verdict(
    run: Run, state: RunState, summary: Summary, findings: Sequence[Finding]
) -> tuple[str, Literal["good", "critical", "unknown"]] | None:
    """Return the verdict of a trial, and its severity; None: not a trial, or it is still running.

    The job may go if the program ran without an error, used each GPU, stayed below its memory
    limit, and if no finding is critical.
    """
    if TRIAL_TAG not in run.tags or state is RunState.RUNNING:
        return None
    against = list(dict.fromkeys(_against(run, state, summary, findings)))
    if against:
        return f"Do not submit the long job yet. {' '.join(against)}", "critical"
    unknown = list(_unknown(run, summary))
    if unknown:
        why = " ".join(unknown)
        return f"Teho cannot judge whether you can submit the long job. {why}", "unknown"
    return f"{_MAY_GO}: {', '.join(_for(run, summary))}.", "good"


def _against(
    run: Run, state: RunState, summary: Summary, findings: Sequence[Finding]
) -> Iterator[str]:
    end = first_failure(run) or run.end
    if end is not None and failed(end):
        yield f"The program failed: {ending(end)}."
    elif state is RunState.INTERRUPTED:
        yield "The trial was cut off before its end."
    unused = [gpu for gpu in summary.gpus if _peak(gpu) == 0]
    if unused and len(summary.gpus) == 1:
        yield "The GPU was never used."
    elif unused:
        yield f"{len(unused)} of {len(summary.gpus)} GPUs were never used."
    for finding in findings:
        is_reported = finding.kind == "run_failed" or (unused and finding.kind == "gpu_never_used")
        if not is_reported and (finding.severity is Severity.CRITICAL or finding.kind in _AGAINST):
            yield finding.sentence


def _unknown(run: Run, summary: Summary) -> Iterator[str]:
    if not run.nodes:
        yield "The recording has no data."
    if absent := absent_hosts(run):
        yield f"{listed(absent)} left no recording."
    allocated = sum(node.allocation.gpus_held or 0 for node in run.nodes)
    seen = sum(_peak(gpu) is not None for gpu in summary.gpus)
    count = max(allocated, len(summary.gpus))
    if seen < count:
        yield f"The use of {counted(count - seen, 'GPU')} was not recorded."


def _peak(gpu: GpuSummary) -> float | None:
    """Return the highest use of a GPU; a MIG slice has no busy share. None: not recorded."""
    for metric in ("gpu_busy_percent", "gpu_sm_active_percent"):
        stat = gpu.stats.get(metric)
        if isinstance(stat, Stat):
            return stat.max
    return None


def _for(run: Run, summary: Summary) -> Iterator[str]:
    end = run.end
    yield f"the trial had no error ({ending(end)})" if end else "the trial had no error"
    if summary.gpus:
        yield f"the program used {'its GPU' if len(summary.gpus) == 1 else 'all its GPUs'}"
    shares = [
        node.memory_peak_bytes / node.memory_limit_bytes
        for node in summary.nodes
        if not isinstance(node.memory_peak_bytes, Missing)
        and not isinstance(node.memory_limit_bytes, Missing)
        and node.memory_limit_bytes
    ]
    if shares:
        yield f"and the memory use reached {100 * max(shares):.0f} % of the memory limit"
    else:
        yield "and the memory use could not be compared with a memory limit"
