"""How far more workers pay: from the runs of a program on several numbers of them to a verdict.

Speed-up is S(n) = X(n) / X(base) by the throughput X of all workers together, with a fixed total of
work (strong) as with a fixed work for each (weak: Gustafson's scaled speed-up, CACM 31(5), 1988).
Efficiency is S over the ratio of workers.
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

__all__ = ["PAYS", "scaling"]

PAYS = 1.5
"""So many times the speed a doubling must give to pay: CSC's user guide, "Performance checklist:
perform a scaling test" (docs.csc.fi/computing/running/performance-checklist)."""

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
    """Say how a program scales.

    Args:
        kind: what was the same for all sizes.
        runs: by the number of workers, 1 or more; `work_per_s` above 0, or None.
        argv: the program's command.
        elapsed_s: how long all took.
        worker: noun of what is counted, in the singular.
        unit: what work is counted in.
        cost_unit: of the runs' `cost`.
        notes: to stand before its own.
    """
    sizes = sorted(runs)
    measured = {n: [run for run in runs[n] if run.work_per_s is not None] for n in sizes}
    measured = {n: own for n, own in measured.items() if own}
    spread = spread_of({n: [run.work_per_s or 0.0 for run in own] for n, own in measured.items()})
    bills, is_cost = _bills(measured)
    steps = _steps(spread, bills)
    fits = _fits(kind, spread)
    words = _Words(kind, worker)
    paying = [step.to_n for step in steps if step.pays]
    open_ = any(step.pays is None for step in steps)
    outcome: Literal["pays_to", "no_gain", "not_enough_evidence"] = "no_gain"
    if paying:
        outcome = "pays_to"
    elif open_ or not steps:
        outcome = "not_enough_evidence"
    return Scaled(
        command=tuple(masked_command(argv)),
        kind=kind,
        worker=worker,
        unit=unit,
        outcome=outcome,
        pays_to=paying[-1] if paying else None,
        verdict=words.verdict(runs, spread, steps),
        base_n=min(measured, default=None),
        sizes=tuple(_size(n, runs[n], measured, spread, bills) for n in sizes),
        steps=steps,
        fits=fits,
        cost_unit=cost_unit if is_cost else "",
        notes=(*notes, *words.remarks(runs, measured, spread, fits)),
        elapsed_s=elapsed_s,
    )


# ---- figures ----


def _bills(measured: _Runs) -> tuple[dict[int, float], bool]:
    """Return the bill of one unit of work for each size, and whether it is the site's cost."""
    costs = {n: _per_work(own, [run.cost for run in own]) for n, own in measured.items()}
    known = {n: cost for n, cost in costs.items() if cost}
    if known and len(known) == len(costs):
        return known, True
    return {
        n: n / geometric_mean([run.work_per_s or 0.0 for run in own]) for n, own in measured.items()
    }, False


def _per_work(runs: Sequence[SizeRun], amounts: Sequence[float | None]) -> float | None:
    """Return the mean amount for a unit of work; None unless all runs tell theirs."""
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
    """Hold each size against the largest one before it that pays.

    So two doublings that pay together pay, though neither could be told alone.
    """
    sizes = sorted(spread.log_means)
    found: list[ScaleStep] = []
    for n in sizes[1:]:
        from_n = next((step.to_n for step in reversed(found) if step.pays), sizes[0])
        speed = spread.ratio(n, from_n)
        needed = PAYS ** math.log2(n / from_n)
        found.append(
            ScaleStep(
                from_n=from_n,
                to_n=n,
                speed=speed,
                bill_ratio=bills[n] / bills[from_n],
                needed=needed,
                pays=_pays(speed, needed),
            )
        )
    return tuple(found)


def _pays(speed: Estimate, needed: float) -> bool | None:
    if speed.low is None or speed.high is None or speed.low < needed <= speed.high:
        return None
    return speed.low >= needed


def _fits(kind: Kind, spread: Spread) -> tuple[Fit, ...]:
    """Return the laws that can be fitted, the most general first: it claims the least.

    Amdahl's law is of a fixed work.
    """
    base_n = min(spread.log_means, default=0)
    laws: list[Literal["amdahl", "usl"]] = ["usl", "amdahl"] if kind == "strong" else ["usl"]
    return tuple(found for law in laws if (found := fit(law, spread, base_n)))


# ---- words ----


class _Words:
    """Sentences about sizes."""

    def __init__(self, kind: Kind, worker: str) -> None:
        self._kind = kind
        self._worker = worker

    def _count(self, n: int) -> str:
        return f"{n} {self._worker}{'s' if n != 1 else ''}"

    def _ratio(self, ratio: Estimate, under: int) -> str:
        interval = (
            f" (95 %: {ratio.low:.2f} to {ratio.high:.2f})"
            if ratio.low is not None and ratio.high is not None
            else ""
        )
        how = "as fast as" if self._kind == "strong" else "the work per second of"
        return f"{ratio.value:.2f} times {how} {under}{interval}"

    def _gave(self, step: ScaleStep) -> str:
        verb = "are" if self._kind == "strong" else "do"
        return f"{step.to_n} {verb} {self._ratio(step.speed, step.from_n)}"

    def verdict(self, runs: _Runs, spread: Spread, steps: Sequence[ScaleStep]) -> str:
        """Return the sentence that matters first."""
        sizes = sorted(spread.log_means)
        if not sizes:
            return "Nothing is known: no run could be measured"
        if not steps:
            return f"Nothing to compare: only {self._count(sizes[0])} could be measured"
        paying = [step.to_n for step in steps if step.pays]
        if paying:
            reached = self._ratio(spread.ratio(paying[-1], sizes[0]), sizes[0])
            failed = sum(run.work_per_s is None for run in runs[paying[-1]])
            but = f", though {failed} of {len(runs[paying[-1]])} runs failed" if failed else ""
            beyond = self._beyond(runs, paying[-1], steps)
            return f"It pays up to {self._count(paying[-1])}: {reached}{but}{beyond}"
        first = steps[0]
        if not spread.errors:
            return f"Nothing is proved, since no run was repeated: {self._gave(first)}"
        unsure = next((step for step in steps if step.pays is None), None)
        if unsure:
            return f"Whether {self._unsure(unsure)}"
        return f"More {self._worker}s do not pay: {self._bought(first)}"

    def _beyond(self, runs: _Runs, pays_to: int, steps: Sequence[ScaleStep]) -> str:
        """Go on about what comes after the last size that pays."""
        after = next((step for step in steps if step.to_n > pays_to), None)
        if after is None:
            failed = next((n for n in sorted(runs) if n > pays_to), None)
            return f"; {failed} could not be measured" if failed else "; more were not tried"
        if after.pays is None:
            return f"; whether {self._unsure(after)}"
        return f"; {self._bought(after)}"

    def _bought(self, step: ScaleStep) -> str:
        return f"{self._gave(step)} for {step.bill_ratio:.2f} times the bill"

    def _unsure(self, step: ScaleStep) -> str:
        return f"{step.to_n} pay is open: {self._gave(step)}, and {step.needed:.3g} is needed"

    def remarks(
        self, runs: _Runs, measured: _Runs, spread: Spread, fits: Sequence[Fit]
    ) -> list[str]:
        """Return what else must be known to read the figures."""
        found = []
        base_n = min(measured, default=1)
        if base_n != 1:
            why = "could not be measured" if 1 in runs else "was not run"
            found.append(f"{self._count(1)} {why}: all runs are compared with {base_n}.")
        if measured and not spread.errors:
            found.append("No run was repeated: how far runs differ by chance is not known.")
        elif measured and not fits:
            least = FEWEST_SIZES["amdahl" if self._kind == "strong" else "usl"]
            found.append(
                f"No law of scaling was fitted: that takes {least} sizes, here are {len(measured)}."
            )
        return found
