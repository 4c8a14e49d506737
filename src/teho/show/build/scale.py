"""The result of `teho scale` as a document: the verdict, every size, the gain of each step."""

from __future__ import annotations

from collections.abc import Iterator

from teho.experiment.figures import size_figures
from teho.model.document import Document, Fact, Item, Table, VerdictSeverity
from teho.model.scaled import Estimate, Fit, Scaled, Size
from teho.show.build.compare import per_steps
from teho.show.build.layout import column, document, listing, table, three_digits
from teho.units import counted, many

__all__ = ["fit_words", "scale_document"]

_SEVERITIES: dict[str, VerdictSeverity] = {
    "pays_to": "good",
    "no_gain": "remark",
    "not_enough_evidence": "unknown",
}
_KINDS = {
    "strong": "Strong scaling: all runs do the same work.",
    "weak": "Weak scaling: in all runs, each GPU or core does the same amount of work.",
}
_EFFICIENT = {True: "yes", False: "no", None: "not yet clear"}
_INTERVAL = "95 % interval"


def scale_document(scaled: Scaled) -> Document:
    """Lay out the speed-up at every size, and the fitted laws."""
    fits = [fit_words(fit, scaled.worker) for fit in scaled.fits]
    out = [item for size in scaled.sizes for item in _out(size, scaled.worker)]
    return document(
        title="teho scale",
        verdict=scaled.verdict,
        verdict_severity=_SEVERITIES[scaled.outcome],
        facts=(Fact("kind", "", _KINDS[scaled.kind]),),
        tables=(
            *([_sizes(scaled)] if scaled.base_n is not None else []),
            *([_steps(scaled)] if scaled.steps else []),
        ),
        lists=(
            listing("fits", "Fitted law", fits[:1]),
            listing("other_fits", "Other fitted laws", fits[1:], "why"),
            listing("out", "Not measured", out),
        ),
        notes=scaled.notes,
    )


def fit_words(fit: Fit, worker: str) -> str:
    """Return a fitted law in a sentence."""
    share = _figure(f"{100 * fit.contention.value:.1f} %", _interval(fit.contention, ".1f", 100))
    off = f"The law differs from the measurements by at most {fit.off_percent:.1f} %."
    serial = f"contention (work that does not run in parallel) {share}"
    if fit.coherency is None:
        return f"Amdahl's law: {serial}. {off}"
    kappa = _figure(f"{fit.coherency.value:.2g}", _interval(fit.coherency, ".2g"))
    peak = ""
    if fit.peak_n:
        until = f"to {fit.peak_n.high:.0f}" if fit.peak_n.high else "or more"
        peak = f" Fastest at {fit.peak_n.value:.0f} {worker}s ({fit.peak_n.low:.0f} {until})."
    return f"Universal Scalability Law: {serial}, coherency (exchange of data) {kappa}.{peak} {off}"


def _figure(value: str, interval: str | None) -> str:
    return f"{value} (95 % confidence: {interval})" if interval else value


def _value(estimate: Estimate | None) -> float | None:
    return estimate.value if estimate else None


def _interval(estimate: Estimate | None, form: str = ".2f", scale: float = 1.0) -> str | None:
    """Return a confidence interval; None if there is none, as for the base, which is 1."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    if estimate.low == estimate.high:
        return None
    return f"{scale * estimate.low:{form}} to {scale * estimate.high:{form}}"


def _sizes(scaled: Scaled) -> Table:
    is_pace = scaled.unit != "run"
    sizes = [
        (size, work, size_figures(size, is_pace=is_pace))
        for size in scaled.sizes
        if (work := size.work_per_s)
    ]
    costs = [own.cost for _, _, own in sizes if own.cost is not None and scaled.cost_unit]
    is_dear = bool(costs) or any(own.energy_j is not None for _, _, own in sizes)
    return table(
        "sizes",
        f"Measurements{per_steps(scaled.unit) if is_pace and is_dear else ''}",
        sizes,
        column("n", f"{scaled.worker}s", lambda one: one[0].n),
        column("pace", f"{many(scaled.unit)}/s", lambda one: one[1].value,
               decimals=three_digits(work.value for _, work, _ in sizes))
        if is_pace
        else column("time", "time", lambda one: one[0].wall_s, unit="s"),
        column("speed_up", "speed-up", lambda one: _value(one[0].speed_up), decimals=2),
        column("interval", _INTERVAL, lambda one: _interval(one[0].speed_up)),
        column("efficiency", "efficiency", lambda one: one[0].efficiency_percent, unit="%"),
        column("energy", "energy", lambda one: one[2].energy_j, unit="J"),
        column("cost", f"cost, {scaled.cost_unit}",
               lambda one: one[2].cost if scaled.cost_unit else None,
               decimals=three_digits(filter(None, costs))),
        column("bill", "bill", lambda one: one[0].bill_ratio, decimals=2),
        column("runs", "runs", lambda one: one[2].run_count),
        only_known=True,
    )  # fmt: skip


def _steps(scaled: Scaled) -> Table:
    return table(
        "steps",
        "Gain of each increase",
        scaled.steps,
        column("step", f"{scaled.worker}s", lambda step: f"{step.from_n} → {step.to_n}"),
        column("speed", "speed", lambda step: step.speed.value, decimals=2),
        column("interval", _INTERVAL, lambda step: _interval(step.speed)),
        column("needed", "needed", lambda step: step.needed, decimals=2),
        column("bill", "bill", lambda step: step.bill_ratio, decimals=2),
        column("pays", "enough", lambda step: _EFFICIENT[step.is_efficient]),
    )


def _out(size: Size, worker: str) -> Iterator[Item]:
    """Yield each reason why runs could not be measured, with their number."""
    whys = [run.why for run in size.runs if run.work_per_s is None]
    for why in dict.fromkeys(whys):
        count = f"{whys.count(why)} of {len(size.runs)} runs: " if len(size.runs) > 1 else ""
        text = count + (why or "could not be measured")
        yield Item(lead=counted(size.n, worker), text=text, severity="critical")
