"""Waste of GPUs in one job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.explain.waste.kind import Found, Limits, billed, is_interactive
from teho.explain.waste.use import JobUse
from teho.model.digest import Amounts
from teho.units import format_bytes

__all__ = [
    "idle_session",
    "low_use",
    "never_used",
    "only_at_first",
    "processes_gone",
    "too_large",
]

# Only a summary of Jobstats, or a recording, has the mean of each GPU. Slurm's gres/gpuutil is not
# used: it has no mean, and a zero can also mean that Slurm cannot measure the GPU.


def idle_session(use: JobUse, limits: Limits) -> Found | None:
    """Judge all GPUs of an interactive session together."""
    if not is_interactive(use) or use.hours * 3600 < limits.interactive_min_s:
        return None
    means = use.gpu_means
    if not means or max(means) >= limits.interactive_percent:
        return None
    wasted = use.hours * sum(1 - mean / 100 for mean in means)
    words = f"session, GPU busy {sum(means) / len(means):.0f} %"
    unused = [place for place, mean in enumerate(means) if not mean]
    return _of_gpus(use, wasted, _energy_j(use, unused)), words, 0.0


def never_used(use: JobUse, limits: Limits) -> Found | None:
    """Find GPUs that were never used."""
    del limits
    unused = [place for place, mean in enumerate(use.gpu_means) if mean == 0]
    if not unused:
        return None
    amounts = _of_gpus(use, len(unused) * use.hours, _energy_j(use, unused))
    which = "the GPU was" if use.gpus == 1 else f"{len(unused)} of {use.gpus} GPUs were"
    return amounts, f"{which} never used", use.gpus - len(unused)


def processes_gone(use: JobUse, limits: Limits) -> Found | None:
    """Find GPUs that the job kept after its processes on them had ended."""
    found = _gone(use, limits)
    which = "GPU" if use.gpus == 1 else f"{len(found)} of {use.gpus} GPUs"
    return _at_the_end(use, found, f"{which} without a process for the last")


def _gone(use: JobUse, limits: Limits) -> dict[int, float]:
    """Return the GPUs that were idle at the end because the processes of the job had ended."""
    least = limits.gpu_idle_end_percent
    pairs = enumerate(zip(use.gpu_gone_ends, use.gpu_idle_ends, strict=False))
    return {place: min(gone, idle) for place, (gone, idle) in pairs if min(gone, idle) >= least}


def only_at_first(use: JobUse, limits: Limits) -> Found | None:
    """Find GPUs that were used, and then idle to the end, with a process or not."""
    gone = _gone(use, limits)
    idle = {
        place: share
        for place, share in enumerate(use.gpu_idle_ends)
        if share >= limits.gpu_idle_end_percent and place not in gone
    }
    which = "GPU" if use.gpus == 1 else f"{len(idle)} of {use.gpus} GPUs"
    return _at_the_end(use, idle, f"{which} idle for the last")


def _at_the_end(use: JobUse, shares: Mapping[int, float], words: str) -> Found | None:
    """Return the waste of GPUs that were not used at the end.

    Args:
        use: of the job.
        shares: place of each such GPU -> share of the time in %.
        words: to which the share is added.
    """
    if not shares:
        return None
    total = sum(shares.values())
    amounts = _of_gpus(use, use.hours * total / 100, _energy_j(use, list(shares)))
    shortest_s = use.hours * 3600 * min(shares.values()) / 100
    return amounts, f"{words} {total / len(shares):.0f} %", shortest_s


def too_large(use: JobUse, limits: Limits) -> Found | None:
    """Find large GPUs with low use, of whose memory little was used."""
    large = [place for place in _low(use, limits) if _is_too_large(use, place, limits)]
    if not large:
        return None
    peak = max(use.gpu_memory[place][0] for place in large)
    whole = format_bytes(max(use.gpu_memory[place][1] for place in large))
    wasted = use.hours * sum(1 - use.gpu_means[place] / 100 for place in large)
    words = f"low use, GPU memory {format_bytes(peak)} of {whole}"
    return _of_gpus(use, wasted), words, peak * limits.memory_margin


def _is_too_large(use: JobUse, place: int, limits: Limits) -> bool:
    if not use.gpu_memory:
        return False
    used, whole = use.gpu_memory[place]
    return whole >= limits.gpu_large_bytes and 100 * used <= limits.gpu_memory_percent * whole


def _low(use: JobUse, limits: Limits) -> list[int]:
    """Return the places of the GPUs with low use that were used to the end."""
    idle_ends = use.gpu_idle_ends or (0.0,) * len(use.gpu_means)
    return [
        place
        for place, (mean, idle_end) in enumerate(zip(use.gpu_means, idle_ends, strict=True))
        if 0 < mean <= limits.gpu_low_percent and idle_end < limits.gpu_idle_end_percent
    ]


def low_use(use: JobUse, limits: Limits) -> Found | None:
    """Find other GPUs with low use."""
    low = [
        use.gpu_means[place] for place in _low(use, limits) if not _is_too_large(use, place, limits)
    ]
    if not low:
        return None
    wasted = use.hours * sum(1 - mean / 100 for mean in low)
    mean = sum(low) / len(low)
    which = "GPU" if use.gpus == 1 else f"{len(low)} of {use.gpus} GPUs"
    return _of_gpus(use, wasted), f"{which} busy {mean:.0f} %", use.gpus


def _energy_j(use: JobUse, places: Sequence[int]) -> float | None:
    """Return the energy that GPUs needed without work; None: not known for each of them."""
    known = [use.gpu_idle_energy_j[place] for place in places] if use.gpu_idle_energy_j else []
    if not known or None in known:
        return None
    return sum(filter(None, known))


def _of_gpus(use: JobUse, gpu_hours: float, energy_j: float | None = None) -> Amounts:
    return Amounts(
        gpu_hours=gpu_hours,
        billing_hours=billed(use, gpu_hours / use.gpu_hours),
        energy_j=energy_j,
    )
