"""How a program scales: from its runs on several numbers of workers to a verdict.

Speed-up is S(n) = X(n) / X(base), with the throughput X of all workers together. This holds for a
fixed total of work (strong) and for fixed work of each worker (weak: Gustafson's scaled speed-up,
CACM 31(5), 1988). Efficiency is S divided by the ratio of workers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, geometric_mean
from typing import Literal

from teho.config.privacy import masked_command
from teho.experiment.scaling_fit import FEWEST_SIZES, fit
from teho.experiment.spread import Spread, spread_of
from teho.model.scaled import Estimate, Fit, Kind, Scaled, ScaleStep, Size, SizeRun
from teho.units import counted

__all__ = ["EFFICIENT_SPEEDUP", "scaling"]

EFFICIENT_SPEEDUP = 1.5
"""Speed-up that a doubling of workers must give: CSC's user guide, "Performance checklist: perform
a scaling test" (docs.csc.fi/computing/running/performance-checklist)."""

_Runs = Mapping[int, Sequence[SizeRun]]


def scaling(
    kind: Kind,
    runs: _Runs,
    *,
    argv: Sequence[str],
    elapsed_s: float,
    worker: str = "worker",
    unit: str = "run",
    cost_unit: str = "",
    notes: Sequence[str] = (),
) -> Scaled:
    """Return how a program scales.

    Args:
        kind: `strong` or `weak`.
        runs: by the number of workers, 1 or more; `work_per_s` above 0, or None.
        argv: the program's command.
        elapsed_s: time of all runs together.
        worker: noun for one worker.
        unit: of the work.
        cost_unit: of the runs' `cost`.
        notes: to show before the notes made here.
    """
    measured = {
        n: own
        for n in sorted(runs)
        if (own := [run for run in runs[n] if run.work_per_s is not None])
    }
    spread = spread_of({n: [run.work_per_s or 0.0 for run in own] for n, own in measured.items()})
    bills, is_cost = _bills(measured)
    steps = _steps(spread, bills)
    fits = _fits(kind, spread)
    words = _Words(kind, worker)
    efficient = [step.to_n for step in steps if step.is_efficient]
    is_open = not steps or any(step.is_efficient is None for step in steps)
    return Scaled(
        command=tuple(masked_command(argv)),
        kind=kind,
        worker=worker,
        unit=unit,
        outcome="pays_to" if efficient else "not_enough_evidence" if is_open else "no_gain",
        efficient_n=efficient[-1] if efficient else None,
        verdict=words.verdict(runs, spread, steps),
        base_n=min(measured, default=None),
        sizes=tuple(_size(n, runs[n], measured, spread, bills) for n in sorted(runs)),
        steps=steps,
        fits=fits,
        cost_unit=cost_unit if is_cost else "",
        notes=(*notes, *words.remarks(runs, measured, spread, fits)),
        elapsed_s=elapsed_s,
    )


# ---- figures ----


def _bills(measured: _Runs) -> tuple[dict[int, float], bool]:
    """Return the bill for one unit of work of each size, and whether it is the site's cost."""
    costs = {n: _per_work(own, [run.cost for run in own]) for n, own in measured.items()}
    known = {n: cost for n, cost in costs.items() if cost}
    if known and len(known) == len(costs):
        return known, True
    return {
        n: n / geometric_mean([run.work_per_s or 0.0 for run in own]) for n, own in measured.items()
    }, False


def _per_work(runs: Sequence[SizeRun], amounts: Sequence[float | None]) -> float | None:
    """Return the mean amount for a unit of work; None unless it is known for all runs."""
    return _mean(
        [
            None if amount is None else amount / ((run.work_per_s or 0.0) * run.wall_s)
            for run, amount in zip(runs, amounts, strict=True)
        ]
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _size(
    n: int, runs: Sequence[SizeRun], measured: _Runs, spread: Spread, bills: Mapping[int, float]
) -> Size:
    own = measured.get(n)
    if own is None:
        return Size(n=n, runs=tuple(runs))
    base_n = min(measured)
    speed_up = spread.ratio(n, base_n)
    energies = [
        _per_work(measured[one], [run.energy_j for run in measured[one]]) for one in (n, base_n)
    ]
    return Size(
        n=n,
        runs=tuple(runs),
        work_per_s=spread.mean(n),
        wall_s=geometric_mean([run.wall_s for run in own]),
        speed_up=speed_up,
        efficiency_percent=100 * speed_up.value * base_n / n,
        energy_j=_mean([run.energy_j for run in own]),
        cost=_mean([run.cost for run in own]),
        energy_ratio=energies[0] / energies[1] if energies[0] and energies[1] else None,
        bill_ratio=bills[n] / bills[base_n],
    )


def _steps(spread: Spread, bills: Mapping[int, float]) -> tuple[ScaleStep, ...]:
    """Compare each size with the largest smaller one that is fast enough.

    So two doublings can be fast enough together, even if a single one cannot be judged.
    """
    sizes = sorted(spread.log_means)
    found: list[ScaleStep] = []
    for n in sizes[1:]:
        from_n = next((step.to_n for step in reversed(found) if step.is_efficient), sizes[0])
        speed = spread.ratio(n, from_n)
        needed = EFFICIENT_SPEEDUP ** math.log2(n / from_n)
        found.append(
            ScaleStep(
                from_n=from_n,
                to_n=n,
                speed=speed,
                bill_ratio=bills[n] / bills[from_n],
                needed=needed,
                is_efficient=_is_efficient(speed, needed),
            )
        )
    return tuple(found)


def _is_efficient(speed: Estimate, needed: float) -> bool | None:
    if speed.low is None or speed.high is None or speed.low < needed <= speed.high:
        return None
    return speed.low >= needed


def _fits(kind: Kind, spread: Spread) -> tuple[Fit, ...]:
    """Return the laws that can be fitted, the most general first.

    Amdahl's law is for a fixed total of work.
    """
    base_n = min(spread.log_means, default=0)
    laws: list[Literal["amdahl", "usl"]] = ["usl", "amdahl"] if kind == "strong" else ["usl"]
    return tuple(found for law in laws if (found := fit(law, spread, base_n)))


# ---- words ----


class _Words:
    """Sentences about sizes."""

    def __init__(self, kind: Kind, worker: str) -> None:
        self._worker = worker
        self._is_strong = kind == "strong"

    def _ratio(self, ratio: Estimate, under: int) -> str:
        interval = (
            f" (95 % confidence: {ratio.low:.2f} to {ratio.high:.2f})"
            if ratio.low is not None and ratio.high is not None
            else ""
        )
        how = "as fast as" if self._is_strong else "the work per second of"
        return f"{ratio.value:.2f} times {how} {counted(under, self._worker)}{interval}"

    def _gave(self, step: ScaleStep) -> str:
        verb = "are" if self._is_strong else "do"
        return f"{counted(step.to_n, self._worker)} {verb} {self._ratio(step.speed, step.from_n)}"

    def _bought(self, step: ScaleStep) -> str:
        return f"{self._gave(step)}, at {step.bill_ratio:.2f} times the cost"

    def _unsure(self, step: ScaleStep) -> str:
        more = counted(step.to_n, self._worker)
        return (
            f"Not yet clear whether {more} are worth it: {self._gave(step)}, and a speed-up of at "
            f"least {step.needed:.3g} is needed"
        )

    def verdict(self, runs: _Runs, spread: Spread, steps: Sequence[ScaleStep]) -> str:
        """Return the sentence of the verdict."""
        sizes = sorted(spread.log_means)
        if not sizes:
            return "Not enough evidence: no run could be measured"
        smallest = counted(sizes[0], self._worker)
        if not steps:
            return f"Not enough evidence: only {smallest} could be measured"
        efficient = [step.to_n for step in steps if step.is_efficient]
        if efficient:
            reached = self._ratio(spread.ratio(efficient[-1], sizes[0]), sizes[0])
            failed = sum(run.work_per_s is None for run in runs[efficient[-1]])
            but = f", although {failed} of {len(runs[efficient[-1]])} runs failed" if failed else ""
            beyond = self._beyond(runs, efficient[-1], steps)
            return f"Use up to {counted(efficient[-1], self._worker)}: {reached}{but}{beyond}"
        if not spread.errors:
            return f"Not enough evidence, because no run was repeated: {self._gave(steps[0])}"
        unsure = next((step for step in steps if step.is_efficient is None), None)
        if unsure:
            return self._unsure(unsure)
        enough = "is enough" if sizes[0] == 1 else "are enough"
        return f"{smallest} {enough}: {self._bought(steps[0])}"

    def _beyond(self, runs: _Runs, efficient_n: int, steps: Sequence[ScaleStep]) -> str:
        """Return a clause about the sizes after the last one that is fast enough."""
        after = next((step for step in steps if step.to_n > efficient_n), None)
        if after is None:
            failed = next((n for n in sorted(runs) if n > efficient_n), None)
            return (
                f". {counted(failed, self._worker)} could not be measured"
                if failed
                else f". More {self._worker}s were not tried"
            )
        return f". {self._unsure(after) if after.is_efficient is None else self._bought(after)}"

    def remarks(
        self, runs: _Runs, measured: _Runs, spread: Spread, fits: Sequence[Fit]
    ) -> list[str]:
        """Return sentences about limits of the figures."""
        found = []
        base_n = min(measured, default=1)
        if base_n != 1:
            why = "could not be measured" if 1 in runs else "was not tried"
            found.append(
                f"1 {self._worker} {why}, so all runs are compared with "
                f"{counted(base_n, self._worker)}."
            )
        if measured and not spread.errors:
            found.append("No run was repeated, so it is not known how much runs differ by chance.")
        elif measured and not fits:
            least = FEWEST_SIZES["amdahl" if self._is_strong else "usl"]
            found.append(
                f"No scaling law was fitted: this needs {least} different numbers of "
                f"{self._worker}s, but only {len(measured)} were measured."
            )
        return found
