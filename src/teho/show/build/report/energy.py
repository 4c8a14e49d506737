"""Energy in a report: of each GPU with its source, and of whole nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from teho.config.electricity import Electricity
from teho.explain.energy import COUNTER, INTEGRATED, energy_of_node
from teho.explain.step import stopped_early
from teho.explain.totals import energy_of, lacking
from teho.model.document import Cell, Fact, Table
from teho.model.missing import Missing
from teho.model.run import Run, RunState
from teho.model.summary import GpuSummary, Summary
from teho.show.build.layout import column, table
from teho.show.build.report.figures import NodeGpu, figure_of, table_of_gpus, watt_hours
from teho.show.build.report.ranking import Judged
from teho.units import J_PER_WH, format_duration, format_quantity

__all__ = ["GPU_ENERGY", "NODE_ENERGY", "energy_facts", "energy_tables"]

GPU_ENERGY = (
    "gpu_energy",
    "GPU",
    (Judged("gross", "less energy", "more energy"), Judged("idle_power", "", "more when idle")),
)
NODE_ENERGY = ("node_energy", "node", (Judged("node_total", "less energy", "more energy"),))
"""How a table of many rows is sorted: its key, what a row is, and the columns to compare."""

T = TypeVar("T")
_FROM = {COUNTER: "counter", INTEGRATED: "power"}
_LEAST_SHOWN_PERCENT = 0.1
_J_PER_KWH = 1000 * J_PER_WH


def energy_facts(
    run: Run, state: RunState, summary: Summary, electricity: Electricity
) -> Iterable[Fact]:
    """Yield the energy of the GPUs, and its carbon and price if the electricity file has them."""
    energy_j = lacking(run) or energy_of(summary.gpus)
    if isinstance(energy_j, Missing):
        yield Fact("gpu_energy_j", "GPU energy", energy_j, "J")
        return
    cut = stopped_early(run, state, summary) or any(gpu.energy.unread_s for gpu in summary.gpus)
    note = "at least" if cut else _how_sure(summary.gpus, energy_j)
    yield Fact("gpu_energy_j", "GPU energy", energy_j, "J", note)
    kwh = energy_j * electricity.pue / _J_PER_KWH
    building = f", PUE {electricity.pue:g}" if electricity.pue != 1 else ""
    if electricity.carbon_g_per_kwh is not None:
        note = f"only for the GPUs, {electricity.carbon_g_per_kwh:g} g/kWh{building}"
        yield Fact("gpu_carbon_g", "Carbon", kwh * electricity.carbon_g_per_kwh, "gCO2e", note)
    if electricity.price_per_kwh is not None:
        note = f"only for the GPUs, {electricity.price_per_kwh:g}/kWh{building}"
        cost = kwh * electricity.price_per_kwh
        yield Fact("gpu_energy_cost", "Electricity", cost, electricity.currency, note)


def _how_sure(gpus: Sequence[GpuSummary], energy_j: float) -> str:
    """Return the uncertainty of a sum, such as `± 3.1 %`; empty if it is small."""
    parts = [gpu.energy.uncertainty_j for gpu in gpus if gpu.energy.counted_with is None]
    off_j = sum(part for part in parts if not isinstance(part, Missing))
    percent = 100 * off_j / energy_j if energy_j > 0 else 0.0
    return f"± {format_quantity(percent, '%')}" if percent >= _LEAST_SHOWN_PERCENT else ""


def energy_tables(summary: Summary) -> Iterable[Table]:
    """Yield a table of the GPUs and one of the nodes, if their energy is known."""
    if any(not isinstance(gpu.energy_j, Missing) for gpu in summary.gpus):
        yield _of_gpus(summary)
    nodes = table(
        NODE_ENERGY[0],
        "Energy of whole nodes",
        summary.nodes,
        column("node", "Node", lambda node: node.name),
        watt_hours("cpu", "CPUs", lambda node: figure_of(node.totals, "cpu_energy_j")),
        watt_hours("memory", "Memory", lambda node: figure_of(node.totals, "memory_energy_j")),
        watt_hours("node_total", "Whole node", lambda node: energy_of_node(node)[0]),
        column("source", "Whole node, source", lambda node: _FROM.get(energy_of_node(node)[1])),
        note="The energy includes the work of all users of the node. The value of the whole node "
        "already includes CPUs, memory and GPUs. Do not add these values.",
    )
    if any(isinstance(cell, float) for row in nodes.rows for cell in row.values()):
        yield nodes


def _of_gpus(summary: Summary) -> Table:
    # A terminal has no room for all columns next to the names of nodes and the outliers.
    several = len(summary.nodes) > 1

    def own(value: Callable[[GpuSummary], Cell]) -> Callable[[NodeGpu], Cell]:
        """Leave out the figures of a GPU whose energy another GPU's counter includes."""
        return lambda pair: None if pair[1].energy.counted_with is not None else value(pair[1])

    return table_of_gpus(
        GPU_ENERGY[0],
        "GPU energy",
        summary,
        watt_hours("gross", "Gross", own(lambda gpu: gpu.energy_j), band="Energy"),
        watt_hours("idle", "Idling", own(lambda gpu: gpu.energy.idle_j), band="Energy"),
        watt_hours("net", "Net", own(lambda gpu: gpu.energy.net_j), band="Energy"),
        watt_hours(
            "uncertainty", "±", own(lambda gpu: gpu.energy.uncertainty_j), band="Energy"
        ),
        column("source", "By", lambda pair: _source(pair[1])),
        watt_hours(
            "integrated", "From power", own(lambda gpu: gpu.energy.integrated_j), aside=several
        ),
        column("apart", "Difference", own(lambda gpu: gpu.energy.difference_percent),
               unit="%", decimals=1),
        column("idle_power", "Idle", own(lambda gpu: gpu.energy.idle_power_w),
               unit="W", decimals=0, aside=several),
        note=" ".join(_notes(summary.gpus)),
    )  # fmt: skip


def _source(gpu: GpuSummary) -> str | None:
    other = gpu.energy.counted_with
    return _FROM.get(gpu.energy_source) if other is None else f"GPU {other}"


def _notes(gpus: Sequence[GpuSummary]) -> Iterable[str]:
    known = [gpu for gpu in gpus if not isinstance(gpu.energy_j, Missing)]
    yield (
        "The column Gross shows all energy that the GPU used. The column Idling shows the energy "
        "that an idle GPU would use in the same time. The column Net is Gross minus Idling."
    )
    if not all(gpu.energy.idle_is_unused for gpu in known):
        yield (
            "Idling is computed from the lowest power in the run. If the GPU was never idle, "
            "Idling is too high, and Net is too low."
        )
    yield (
        "The column ± shows the error of the energy that is possible because the times of the "
        "samples are not exact. The error of the sensors is not included."
    )
    yield (
        "The column Difference compares the value of the energy counter with the mean power "
        "multiplied by the time. +2 % means that the counter's value is 2 % higher."
    )
    if any(gpu.energy_source == INTEGRATED and not gpu.energy.stuck_s for gpu in known):
        yield "If a GPU has no counter, its energy is power times time."
    if any(gpu.energy.stuck_s for gpu in known):
        yield "If a counter stopped, Teho uses power times time instead of the counter."
    if lost := [gpu for gpu in known if gpu.energy.unread_s]:
        until = " and ".join(dict.fromkeys(map(_last_seen, lost)))
        yield f"{until}: the energy is at least the value shown."
    if any(gpu.energy.shares_with for gpu in known):
        yield "One counter measures both GPUs of a card: each value is the energy of both GPUs."
    yield from dict.fromkeys(filter(None, map(_extra_parts, known)))


def _last_seen(gpu: GpuSummary) -> str:
    seconds = format_duration(gpu.energy.unread_s)
    return f"GPU {gpu.position} could not be read for the last {seconds}"


def _extra_parts(gpu: GpuSummary) -> str:
    """Return what a counter includes in addition to its GPU; empty if it includes nothing more."""
    if gpu.device.energy_of == "module":
        return f"The counter of {gpu.device.name} measures the whole module, with its CPU cores."
    if gpu.device.energy_of == "package" and not gpu.energy.shares_with:
        return (
            f"The counter of GPU {gpu.position} measures its whole card. The other GPU of the card "
            "is not part of this run, and another job may have used it."
        )
    return ""
