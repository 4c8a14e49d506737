"""Whether there is evidence that a run used its GPUs well."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.native import label_of, native_uses
from teho.explain.wording import joined, most_of_it
from teho.model.finding import Threshold
from teho.model.run import Run
from teho.model.summary import GpuSummary, Stat, Summary

__all__ = ["good_use", "main_loss"]

_MOST = 0.5
"""A Python process that ran for a smaller part of the run does not say where the time went."""
_LEAST_PERCENT = 20.0
_NAMED = 2


def good_use(summary: Summary, limits: Mapping[str, Threshold]) -> bool:
    """Return whether the signals show that the GPUs did useful work for most of the time.

    Each GPU was busy, and drew much of its power or had work on its multiprocessors. A signal that
    is missing is no evidence. Without GPUs there is none: cores are also busy if they compute the
    same again, or wait in a loop.

    Args:
        summary: the figures of the run.
        limits: the thresholds of good use.
    """
    return bool(summary.gpus) and all(_is_used(gpu, limits) for gpu in summary.gpus)


def _is_used(gpu: GpuSummary, limits: Mapping[str, Threshold]) -> bool:
    power_limit_w = gpu.device.power_limit_w
    active, busy, power = (
        gpu.stats.get(name) for name in ("gpu_sm_active_percent", "gpu_busy_percent", "gpu_power_w")
    )
    if isinstance(active, Stat):
        return active.mean >= limits["sm_active_percent"].value
    if not isinstance(busy, Stat) or busy.mean < limits["gpu_busy_percent"].value:
        return False
    # A GPU that waits for others or runs tiny kernels is busy, and draws little power.
    if not isinstance(power, Stat) or not power_limit_w:
        return False
    return 100 * power.mean / power_limit_w >= limits["power_percent"].value


def main_loss(run: Run, summary: Summary) -> str:
    """Return where most of the time went: `79 % at run.py:20, subprocess.run(…)`; or empty.

    If no Python process ran for most of the time, these are the other programs.
    """
    main = summary.program.mains[0] if summary.program else None
    if main is None or main.process.wall_s < _MOST * summary.elapsed_s:
        return _other_programs(run)
    spent = main.spent[0] if main.spent else None
    if spent is None:
        return ""
    share = 100 * spent.wall_s / main.process.wall_s
    where = most_of_it(spent.lines)
    return f"{share:.0f} % of the time was spent on {spent.doing.value}{where}"


def _other_programs(run: Run) -> str:
    """Return the programs other than Python that ran for much of the time; or empty."""
    seen = [
        (100 * one.samples / node.program_samples, one.name)
        for node in run.nodes
        for one in node.programs
    ]
    longest = [f"`{name}` ran for {share:.0f} %" for share, name in seen if share >= _LEAST_PERCENT]
    if not longest:
        return ""
    first = next(name for share, name in seen if share >= _LEAST_PERCENT)
    most = _most_used(run, first)
    who = f"`{first}` " if len(longest) > 1 else ""
    return f"{joined(longest[:_NAMED])} of the time{f', and {who}{most}' if most else ''}"


def _most_used(run: Run, program: str) -> str:
    """Return where a program used most CPU time: `spent 71 % of its CPU time in …`; or empty."""
    uses = [use.program for use in native_uses(run) if use.program.name == program]
    samples: dict[tuple[str, str], int] = {}
    for use in uses:
        for one in use.functions:
            key = label_of(one), one.file
            samples[key] = samples.get(key, 0) + one.samples
    if not samples:
        return ""
    name, file = most = max(samples, key=lambda key: samples[key])
    share = 100 * samples[most] / sum(use.samples for use in uses)
    if share < _LEAST_PERCENT or not name:
        return ""
    in_file = "" if file in {name, *(use.file for use in uses)} else f" of {file}"
    return f"spent {share:.0f} % of its CPU time in `{name}`{in_file}"
