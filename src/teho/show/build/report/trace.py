"""The newest trace of a run in its report, compared with the findings from samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.explain.kinds import INPUT_CAUSES
from teho.model.document import Listing
from teho.model.finding import Finding
from teho.model.trace import Profiled, mean_parts
from teho.profile.judge import LARGE_SHARE, percent_of
from teho.show.build.layout import listing
from teho.units import format_quantity

__all__ = ["trace_listing"]

_LESS = LARGE_SHARE / 2
"""Share of a step below which a trace shows less of a problem than the samples do. It is Teho's own
choice: a finding needs at least 10 %."""


class _Compared(NamedTuple):
    """What a trace says about a group of findings."""

    kinds: tuple[str, ...]
    clause: str
    """After: in the recorded steps, …."""
    share: float | None
    """Part of a step, 0 to 1; None: the trace does not have it."""


def trace_listing(profiled: Profiled, findings: Sequence[Finding]) -> Listing:
    """Return what the trace says, and which findings agree with it.

    Args:
        profiled: the newest traces of the run.
        findings: of the run, from samples.
    """
    compared = _agreements(profiled, findings)
    return listing(
        "trace", "In the trace of some steps", (profiled.verdict, *compared, *profiled.advice)
    )


def _agreements(profiled: Profiled, findings: Sequence[Finding]) -> Iterator[str]:
    for kinds, clause, share in _compared(profiled):
        finding = next((one for one in findings if one.kind in kinds), None)
        if finding is None or share is None or _LESS <= share < LARGE_SHARE:
            continue
        amount = format_quantity(100 * share, "%") if share else "0 %"
        if share >= LARGE_SHARE:
            yield (
                f"This agrees with the finding “{finding.sentence}” In the recorded steps, "
                f"{clause} for {amount} of a step."
            )
        else:
            yield (
                f"The trace does not show what this finding says: “{finding.sentence}” In the "
                f"recorded steps, {clause} for only {amount} of a step. Other steps may be "
                "different: `teho profile --steps` records them."
            )


def _compared(profiled: Profiled) -> Iterator[_Compared]:
    """Yield what the trace says about each group of findings."""
    step_s = sum(trace.step_s for trace in profiled.traces)
    data_s = sum(trace.data_s for trace in profiled.traces)
    # Without PyTorch's data loader, the trace does not show this time.
    loading = percent_of(data_s, step_s) / 100 if data_s else None
    yield _Compared(INPUT_CAUSES, "the program waited for its data loader", loading)
    if not profiled.devices:
        return
    mean = mean_parts([device.mean for device in profiled.devices])

    def part(time_s: float) -> float:
        return percent_of(time_s, mean.elapsed_s) / 100

    yield _Compared(
        ("host_bound",), "the GPU waited for the program to launch a kernel",
        part(mean.idle.launch_s),
    )  # fmt: skip
    yield _Compared(
        ("waits_for_device",), "the GPU was idle because the program had waited for its results",
        part(mean.idle.sync_s),
    )  # fmt: skip
    yield _Compared(
        ("communication_bound", "gradients_exchanged_often"), "the ranks only exchanged data",
        part(mean.exposed_collective_s + mean.idle.collective_s),
    )  # fmt: skip
