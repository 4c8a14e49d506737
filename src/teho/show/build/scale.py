"""The result of `teho scale` as a document: the verdict, every size, the gain of each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10

from teho.experiment.figures import size_figures
from teho.model.document import Cell, Column, Document, Fact, Item, Table, VerdictSeverity
from teho.model.scaled import Estimate, Fit, Scaled, Size
from teho.show.build.compare import per_steps
from teho.show.build.layout import column, listing, table
from teho.units import counted, many
from teho.version import __version__

__all__ = ["fit_words", "scale_document"]

_SEVERITIES: dict[str, VerdictSeverity] = {
    "pays_to": "good",
    "no_gain": "remark",
    "not_enough_evidence": "unknown",
}
_KINDS = {
    "strong": "Strong scaling: all sizes do the same work.",
    "weak": "Weak scaling: each worker does the same work.",
}
_PAYS = {True: "yes", False: "no", None: "open"}
_INTERVAL = "95 % interval"


def scale_document(scaled: Scaled) -> Document:
    """Lay out the speed-up at every size, and the fitted laws."""
    fits = [fit_words(fit, scaled.worker) for fit in scaled.fits]
    out = [item for size in scaled.sizes for item in _out(size, scaled.worker)]
    return Document(
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
        teho_version=__version__,
    )


def fit_words(fit: Fit, worker: str) -> str:
    """Return a fitted law in a sentence."""
    share = _figure(f"{100 * fit.contention.value:.1f} %", _interval(fit.contention, ".1f", 100))
    off = f"differs from the measurements by at most {fit.off_percent:.1f} %."
    if fit.coherency is None:
        return f"Amdahl's law: contention {share}; {off}"
    kappa = _figure(f"{fit.coherency.value:.2g}", _interval(fit.coherency, ".2g"))
    peak = ""
    if fit.peak_n:
        until = f"{fit.peak_n.high:.0f}" if fit.peak_n.high else "more"
        peak = f" fastest at {fit.peak_n.value:.0f} {worker}s ({fit.peak_n.low:.0f} to {until});"
    return f"Universal Scalability Law: contention {share}, coherency {kappa};{peak} {off}"


def _figure(value: str, interval: str | None) -> str:
    return f"{value} (95 %: {interval})" if interval else value


def _interval(estimate: Estimate, form: str = ".2f", scale: float = 1.0) -> str | None:
    """Return a confidence interval; None if there is none, as for the base, which is 1."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return None
    return f"{scale * estimate.low:{form}} to {scale * estimate.high:{form}}"


def _sizes(scaled: Scaled) -> Table:
    measured = [size for size in scaled.sizes if size.work_per_s]
    is_pace = scaled.unit != "run"
    paces = [size.work_per_s.value for size in measured if size.work_per_s]
    rows = tuple(_size(size, is_pace=is_pace) for size in measured)
    costs = [cost for row in rows if isinstance(cost := row["cost"], float) and cost]
    columns = [
        Column(key="n", label=f"{scaled.worker}s"),
        Column(key="pace", label=f"{many(scaled.unit)}/s", decimals=_decimals(paces))
        if is_pace
        else Column(key="time", label="time", unit="s"),
        Column(key="speed_up", label="speed-up", decimals=2),
        Column(key="interval", label=_INTERVAL),
        Column(key="efficiency", label="efficiency", unit="%"),
        Column(key="energy", label="energy", unit="J"),
        Column(key="cost", label=f"cost, {scaled.cost_unit}", decimals=_decimals(costs)),
        Column(key="bill", label="bill", decimals=2),
        Column(key="runs", label="runs"),
    ]
    known = {key for row in rows for key, cell in row.items() if cell is not None}
    if not scaled.cost_unit:
        known.discard("cost")
    is_dear = is_pace and {"energy", "cost"} & known
    return Table(
        key="sizes",
        title=f"Sizes{per_steps(scaled.unit) * bool(is_dear)}",
        columns=tuple(column for column in columns if column.key in known),
        rows=rows,
    )


def _decimals(values: Sequence[float]) -> int:
    """Return the number of decimals that gives the smallest value three digits."""
    return max(0, 2 - floor(log10(min(values, default=1.0))))


def _size(size: Size, *, is_pace: bool) -> dict[str, Cell]:
    figures = size_figures(size, is_pace=is_pace)
    return {
        "n": size.n,
        "time": size.wall_s,
        "pace": size.work_per_s.value if size.work_per_s else None,
        "speed_up": size.speed_up.value if size.speed_up else None,
        "interval": _interval(size.speed_up) if size.speed_up else None,
        "efficiency": size.efficiency_percent,
        "energy": figures.energy_j,
        "cost": figures.cost,
        "bill": size.bill_ratio,
        "runs": figures.run_count,
    }


def _steps(scaled: Scaled) -> Table:
    return table(
        "steps",
        "Gain of each step",
        scaled.steps,
        (
            column("step", f"{scaled.worker}s", lambda step: f"{step.from_n} → {step.to_n}"),
            column("speed", "speed", lambda step: step.speed.value, decimals=2),
            column("interval", _INTERVAL, lambda step: _interval(step.speed)),
            column("needed", "needed", lambda step: step.needed, decimals=2),
            column("bill", "bill", lambda step: step.bill_ratio, decimals=2),
            column("pays", "enough", lambda step: _PAYS[step.pays]),
        ),
    )


def _out(size: Size, worker: str) -> Iterator[Item]:
    """Yield each reason why runs could not be measured, with their number."""
    whys = [run.why for run in size.runs if run.work_per_s is None]
    for why in dict.fromkeys(whys):
        count = f"{whys.count(why)} of {len(size.runs)} runs: " if len(size.runs) > 1 else ""
        text = count + (why or "could not be measured")
        yield Item(lead=counted(size.n, worker), text=text, severity="critical")
