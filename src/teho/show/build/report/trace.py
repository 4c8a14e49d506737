"""The newest trace of a run as a finding of its report, compared with the findings from samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from teho.explain.kinds import INPUT_CAUSES
from teho.model.finding import Certainty, Evidence, Finding, Severity, Threshold
from teho.model.trace import Parts, Profiled, Trace, mean_parts
from teho.profile.advice import is_compiling
from teho.profile.figures import waiting_of
from teho.profile.judge import (
    IDLE_WORDS,
    LARGE_SHARE,
    idle_reasons,
    is_wasteful,
    percent_of,
    shown_trace,
)
from teho.units import counted, format_quantity, format_time

__all__ = ["KIND", "findings_with_trace"]

KIND = "trace"
"""Kind of the finding that a trace makes."""
_LESS = LARGE_SHARE / 2
"""Share of a step below which a trace shows less of a problem than the samples do. It is Teho's own
choice: a finding needs at least 10 %."""
_SEVERE = (Severity.CRITICAL, Severity.WARNING)
_MOST_PARTS = 4
"""Largest number of parts of a step in the evidence."""
_LEAST_PART = 0.01
"""Share of a step from which a part is evidence."""
_SOURCE = "Teho's own choice: smaller parts of a step are not worth a sentence"


class _Compared(NamedTuple):
    """What a trace says about a group of findings."""

    kinds: tuple[str, ...]
    clause: str
    """After: in the recorded steps, …."""
    label: str
    """Of the evidence."""
    share: float
    """Part of a step, 0 to 1."""


def findings_with_trace(
    profiled: Profiled, findings: Sequence[Finding], run_id: str
) -> tuple[Finding, ...]:
    """Return the findings of a run, corrected by its trace, and the finding of the trace.

    A finding gets what the trace shows as evidence. If the trace shows less than half of what a
    finding needs, the finding becomes a remark that is only possible, and says so.

    Args:
        profiled: the newest traces of the run.
        findings: of the run, from samples; the most important first.
        run_id: the run, for a command.
    """
    compared = [] if is_compiling(shown_trace(profiled.traces)) else list(_compared(profiled))
    left: list[Finding] = []
    doubtful: list[Finding] = []
    agrees = False
    for finding in findings:
        seen = next((one for one in compared if finding.kind in one.kinds), None)
        if seen is None:
            left.append(finding)
        elif seen.share < _LESS:
            doubtful.append(_doubted(_with_evidence(finding, seen), seen))
        else:
            agrees = agrees or (seen.share >= LARGE_SHARE and finding.severity in _SEVERE)
            left.append(_with_evidence(finding, seen))
    own = _of_trace(profiled, run_id, is_reported=agrees)
    serious = [one for one in (*left, own) if one.severity in _SEVERE]
    remarks = [one for one in (own, *doubtful, *left) if one.severity not in _SEVERE]
    return (*serious, *remarks)


def _with_evidence(finding: Finding, seen: _Compared) -> Finding:
    shown = Evidence(f"{seen.label}, in the trace", 100 * seen.share, "%")
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, shown))


def _doubted(finding: Finding, seen: _Compared) -> Finding:
    amount = format_quantity(100 * seen.share, "%") if seen.share else "0 %"
    return msgspec.structs.replace(
        finding,
        severity=Severity.HINT if finding.severity is Severity.HINT else Severity.REMARK,
        certainty=Certainty.POSSIBLE,
        sentence=f"{finding.sentence} But in the recorded steps, {seen.clause} for only {amount} "
        "of a step.",
        action="Record other steps first (`teho profile --steps`), because they may be different. "
        f"{finding.action}",
        regain_percent=None,
    )


def _of_trace(profiled: Profiled, run_id: str, *, is_reported: bool) -> Finding:
    """Return what the trace says as a finding.

    Args:
        profiled: the newest traces of the run.
        run_id: the run, for a command.
        is_reported: whether a finding from samples already reports this loss.
    """
    traces = profiled.traces
    shown = shown_trace(traces)
    is_loss = is_wasteful(traces) and not is_compiling(shown)
    # The profiler makes launches later: then samples have to show the loss too.
    is_longer = is_loss and _is_of_profiler(profiled)
    longer = " Without the profiler, this time is shorter." if is_longer else ""
    shares = {"compiling": percent_of(shown.compile_s, shown.step_s)} if shown.compile_s else {}
    if profiled.devices:
        shares = _shares(mean_parts([device.mean for device in profiled.devices]))
    return Finding(
        kind=KIND,
        severity=(
            Severity.WARNING if is_loss and not is_longer and not is_reported else Severity.REMARK
        ),
        sentence=f"{profiled.verdict} This is from {_extent(shown)}.{longer}",
        evidence=tuple(
            Evidence(label, share, "%")
            for label, share in list(shares.items())[:_MOST_PARTS]
            if share >= 100 * _LEAST_PART
        ),
        thresholds=(Threshold(100 * LARGE_SHARE, "%", _SOURCE),),
        action=" ".join(profiled.advice) or f"`teho profile {run_id}` shows all parts of a step.",
        certainty=Certainty.LIKELY,
    )


def _is_of_profiler(profiled: Profiled) -> bool:
    """Return whether the loss may be only the profiler's own work, which makes launches later."""
    if not profiled.devices or waiting_of(profiled.traces):
        return False
    mean = mean_parts([device.mean for device in profiled.devices])
    others_s = max(mean.idle_s - mean.idle.launch_s, mean.exposed_collective_s, mean.exposed_copy_s)
    return others_s < LARGE_SHARE * mean.elapsed_s


def _shares(mean: Parts) -> dict[str, float]:
    """Return the parts of a step in %, by what the GPU was, the largest first."""
    found = {
        "computing": mean.compute_s,
        "only exchanging data": mean.exposed_collective_s,
        "only copying": mean.exposed_copy_s,
        **{IDLE_WORDS[one.key].label: one.time_s for one in idle_reasons(mean)},
    }
    shares = {label: percent_of(time_s, mean.elapsed_s) for label, time_s in found.items()}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def _extent(trace: Trace) -> str:
    """Return what was recorded: `the trace of 5 steps`."""
    if trace.step_count:
        return f"the trace of {counted(trace.step_count, 'step')}"
    return f"a trace of {format_time(trace.step_s)}"


def _compared(profiled: Profiled) -> Iterator[_Compared]:
    """Yield what the trace says about each group of findings."""
    step_s = sum(trace.step_s for trace in profiled.traces)
    data_s = sum(trace.data_s for trace in profiled.traces)
    # Without PyTorch's data loader, the trace does not show this time.
    if data_s:
        yield _Compared(
            INPUT_CAUSES, "the program waited for its data loader", "waiting for data",
            percent_of(data_s, step_s) / 100,
        )  # fmt: skip
    if not profiled.devices:
        return
    mean = mean_parts([device.mean for device in profiled.devices])

    def part(time_s: float) -> float:
        return percent_of(time_s, mean.elapsed_s) / 100

    yield _Compared(
        ("host_bound",), "the GPU waited for the program to launch a kernel",
        "idle, nothing launched yet", part(mean.idle.launch_s),
    )  # fmt: skip
    yield _Compared(
        ("waits_for_device",), "the GPU was idle because the program had waited for its results",
        "idle, after synchronising", part(mean.idle.sync_s),
    )  # fmt: skip
    yield _Compared(
        ("communication_bound", "gradients_exchanged_often"), "the ranks only exchanged data",
        "only exchanging data", part(mean.exposed_collective_s + mean.idle.collective_s),
    )  # fmt: skip
