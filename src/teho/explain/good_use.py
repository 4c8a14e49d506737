"""Whether there is evidence that a run used its cores and GPUs well."""

from __future__ import annotations

from collections.abc import Mapping

from teho.model.finding import Threshold
from teho.model.missing import Missing
from teho.model.program import Doing, MainProcess
from teho.model.summary import GpuSummary, Stat, Summary

__all__ = ["good_use", "main_loss"]

_WORK = (Doing.PYTHON, Doing.NATIVE, Doing.THREADS, Doing.DEVICE)


def good_use(summary: Summary, limits: Mapping[str, Threshold]) -> bool:
    """Return whether the signals show that the devices did useful work for most of the time.

    With GPUs: each GPU was busy, and drew much of its power or had work on its multiprocessors.
    Without GPUs: the cores were busy, and the main thread computed. Busy cores alone are no
    evidence: threads that wait for each other in a loop keep them busy too. A signal that is
    missing is no evidence either.

    Args:
        summary: the figures of the run.
        limits: the thresholds of good use.
    """
    if summary.gpus:
        return all(_is_used(gpu, limits) for gpu in summary.gpus)
    cores = sum(node.cores for node in summary.nodes)
    figures = [node.cpu_cores_used for node in summary.nodes]
    if not cores or any(isinstance(one, Missing) for one in figures):
        return False
    used = sum(one for one in figures if isinstance(one, float))
    if 100 * used / cores < limits["cores_percent"].value:
        return False
    mains = summary.program.mains if summary.program else ()
    return bool(mains) and all(_computes(main, limits) for main in mains)


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


def _computes(main: MainProcess, limits: Mapping[str, Threshold]) -> bool:
    """Return whether a process computed, or waited for its own processes, for most of its time."""
    helpers = Doing.PROCESS if main.children else Doing.NATIVE
    return main.percent(*_WORK, helpers) >= limits["computing_percent"].value


def main_loss(summary: Summary) -> str:
    """Return where most of the time went: `79 % at run.py:20, subprocess.run(…)`; or empty."""
    program = summary.program
    if program is None:
        return ""
    main = program.mains[0]
    spent = main.spent[0] if main.spent else None
    if spent is None:
        return ""
    share = 100 * spent.wall_s / main.process.seen_s
    where = ""
    if spent.lines:
        frame = spent.lines[0][0]
        where = f", most of it at {frame.file.rpartition('/')[2]}:{frame.line}"
    return f"{share:.0f} % of the time went to {spent.doing.value}{where}"
