"""What `teho scale` found, on a terminal: the verdict, every size, what more workers buy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10

from rich.text import Text

from teho.model.document import Cell, Column, Table
from teho.model.scaled import Estimate, Fit, Scaled, Size
from teho.show.cells import plain
from teho.show.compare_text import STEPS, cost_of
from teho.show.text.flow import flow, printed, words
from teho.show.text.table import table_lines
from teho.units import many

__all__ = ["fit_words", "render_scaled"]

_MARKS = {
    "pays_to": ("✓", "bold green"),
    "no_gain": ("i", "bold"),
    "not_enough_evidence": ("?", "bold yellow"),
}
_KINDS = {
    "strong": "Strong scaling: all sizes do the same work.",
    "weak": "Weak scaling: each worker does the same work.",
}
_PAYS = {True: "yes", False: "no", None: "open"}
_INTERVAL = "95 % interval"


def render_scaled(scaled: Scaled, *, width: int, color: bool) -> str:
    """Render it; ends in a line break."""
    mark, style = _MARKS[scaled.outcome]
    lead = Text.assemble((mark, style), " ")
    blocks = [
        flow(words(scaled.verdict), width, lead, style="bold")
        + _sentence(_KINDS[scaled.kind], width)
    ]
    if scaled.base_n is not None:
        blocks.append(table_lines(_sizes(scaled), width))
    if scaled.steps:
        blocks.append(table_lines(_steps(scaled), width))
    if scaled.fits:
        blocks.append(_sentence(fit_words(scaled.fits[0], scaled.worker), width))
    if out := [line for size in scaled.sizes for line in _out(size, scaled.worker, width)]:
        blocks.append(out)
    if scaled.notes:
        blocks.append([line for note in scaled.notes for line in _sentence(note, width)])
    return printed(blocks, width=width, color=color)


def fit_words(fit: Fit, worker: str) -> str:
    """Return a fitted law in a sentence."""
    share = _figure(f"{100 * fit.contention.value:.1f} %", _interval(fit.contention, ".1f", 100))
    off = f"off by {fit.off_percent:.1f} % at most."
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
    """Return it in words; None if there is none, as of the base, which is 1 by definition."""
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return None
    return f"{scale * estimate.low:{form}} to {scale * estimate.high:{form}}"


def _sentence(text: str, width: int) -> list[Text]:
    return flow(words(text), width, Text("  "), style="dim")


def _sizes(scaled: Scaled) -> Table:
    measured = [size for size in scaled.sizes if size.work_per_s]
    paces = [size.work_per_s.value for size in measured if size.work_per_s]
    rows: tuple[dict[str, Cell], ...] = tuple(
        _size(size, is_pace=scaled.unit != "run") for size in measured
    )
    costs = [cost for row in rows if isinstance(cost := row["cost"], float) and cost]
    columns = [
        Column(key="n", label=f"{scaled.worker}s"),
        Column(key="time", label="time", unit="s")
        if scaled.unit == "run"
        else Column(key="pace", label=f"{many(scaled.unit)}/s", decimals=_decimals(paces)),
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
    is_dear = scaled.unit != "run" and {"energy", "cost"} & known
    per = cost_of(scaled.unit) if is_dear else ""
    return Table(
        key="sizes",
        title=f"Sizes{per}",
        columns=tuple(column for column in columns if column.key in known),
        rows=rows,
        shown=tuple(range(len(rows))),
    )


def _decimals(values: Sequence[float]) -> int:
    """Return how many give the smallest of them three digits."""
    return max(0, 2 - floor(log10(min(values, default=1.0))))


def _size(size: Size, *, is_pace: bool) -> dict[str, Cell]:
    speed_up, times = size.speed_up, 1.0
    if is_pace and size.work_per_s and size.wall_s:  # as in `teho compare`: at its mean power
        times = STEPS / (size.work_per_s.value * size.wall_s)
    return {
        "n": size.n,
        "time": size.wall_s,
        "pace": size.work_per_s.value if size.work_per_s else None,
        "speed_up": speed_up.value if speed_up else None,
        "interval": _interval(speed_up) if speed_up else None,
        "efficiency": size.efficiency_percent,
        "energy": None if size.energy_j is None else size.energy_j * times,
        "cost": None if size.cost is None else size.cost * times,
        "bill": size.bill_ratio,
        "runs": sum(run.work_per_s is not None for run in size.runs),
    }


def _steps(scaled: Scaled) -> Table:
    columns = (
        Column(key="step", label=f"{scaled.worker}s"),
        Column(key="speed", label="speed", decimals=2),
        Column(key="interval", label=_INTERVAL),
        Column(key="needed", label="needed", decimals=2),
        Column(key="bill", label="bill", decimals=2),
        Column(key="pays", label="pays"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "step": f"{step.from_n} → {step.to_n}",
            "speed": step.speed.value,
            "interval": _interval(step.speed),
            "needed": step.needed,
            "bill": step.bill_ratio,
            "pays": _PAYS[step.pays],
        }
        for step in scaled.steps
    )
    return Table(
        key="steps",
        title="What more buys",
        columns=columns,
        rows=rows,
        shown=tuple(range(len(rows))),
    )


def _out(size: Size, worker: str, width: int) -> Iterator[Text]:
    """Say of each reason, once, how many runs could not be measured for it."""
    whys = [run.why for run in size.runs if run.work_per_s is None]
    for why in dict.fromkeys(whys):
        which = f"{size.n} {worker}{'s' if size.n != 1 else ''}"
        lead = Text.assemble("  ✗ ", plain(which), ": ")
        many = f"{whys.count(why)} of {len(size.runs)} runs: " if len(size.runs) > 1 else ""
        yield from flow(words(many + (why or "could not be measured")), width, lead, hang=4)
