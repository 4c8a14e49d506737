"""What the view says of energy: of each GPU with what stands behind it, and of whole nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.config.electricity import Electricity
from teho.explain.energy import COUNTER, INTEGRATED, energy_of_node
from teho.explain.step import stopped_early
from teho.explain.totals import energy_of, lacking
from teho.model.document import Cell, Column, Fact, Table
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.model.summary import GpuSummary, NodeSummary, Summary
from teho.show.build.report.ranking import Judged
from teho.units import J_PER_WH, format_duration, format_quantity

__all__ = ["GPU_ENERGY", "NODE_ENERGY", "energy_facts", "energy_tables"]

GPU_ENERGY = (
    "gpu_energy",
    "GPU",
    (Judged("gross", "less energy", "more energy"), Judged("idle_power", "", "more when idle")),
)
NODE_ENERGY = ("node_energy", "node", (Judged("node_total", "less energy", "more energy"),))
"""How tables of many rows are sorted: key, what a row is, columns that are compared."""

_FROM = {COUNTER: "counter", INTEGRATED: "power"}
_WORTH_A_WORD_PERCENT = 0.1
_J_PER_KWH = 1000 * J_PER_WH


def energy_facts(
    run: Run, state: RunState, summary: Summary, electricity: Electricity
) -> Iterable[Fact]:
    """Yield the GPUs' energy and, where the user's or site's file tells, what that means."""
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
        note = f"only of the GPUs, {electricity.carbon_g_per_kwh:g} g/kWh{building}"
        yield Fact("gpu_carbon_g", "Carbon", kwh * electricity.carbon_g_per_kwh, "gCO2e", note)
    if electricity.price_per_kwh is not None:
        note = f"only of the GPUs, {electricity.price_per_kwh:g}/kWh{building}"
        cost = kwh * electricity.price_per_kwh
        yield Fact("gpu_energy_cost", "Electricity", cost, electricity.currency, note)


def _how_sure(gpus: Sequence[GpuSummary], energy_j: float) -> str:
    """Say how far off a sum may be, where that is worth a word: `± 3.1 %`."""
    parts = [gpu.energy.uncertainty_j for gpu in gpus if gpu.energy.counted_with is None]
    off_j = sum(part for part in parts if not isinstance(part, Missing))
    percent = 100 * off_j / energy_j if energy_j > 0 else 0.0
    return f"± {format_quantity(percent, '%')}" if percent >= _WORTH_A_WORD_PERCENT else ""


def energy_tables(summary: Summary) -> Iterable[Table]:
    """Yield a table of the GPUs, and one of the nodes, where anything is known."""
    if any(not isinstance(gpu.energy_j, Missing) for gpu in summary.gpus):
        yield _of_gpus(summary)
    rows = [_node_row(node) for node in summary.nodes]
    keys = ("cpu", "memory", "node_total")
    if any(isinstance(row[key], float) for row in rows for key in keys):
        yield Table(
            key=NODE_ENERGY[0],
            title="Energy of whole nodes",
            columns=(
                Column(key="node", label="Node"),
                *(
                    Column(key=key, label=label, unit="J", shown_in="Wh", decimals=2)
                    for key, label in zip(keys, ("CPUs", "Memory", "Whole node"), strict=True)
                ),
                Column(key="source", label="Whole node by"),
            ),
            rows=tuple(rows),
            note="Energy of all users of the node. The whole node's energy includes CPUs, memory "
            "and GPUs: do not add them up.",
        )


def _node_row(node: NodeSummary) -> dict[str, Cell]:
    energy_j, source = energy_of_node(node)
    nothing = Missing(Reason.UNRECORDED, "not among the metrics looked at")
    return {
        "node": node.name,
        "cpu": node.totals.get("cpu_energy_j", nothing),
        "memory": node.totals.get("memory_energy_j", nothing),
        "node_total": energy_j,
        "source": _FROM.get(source),
    }


def _of_gpus(summary: Summary) -> Table:
    def watt_hours(key: str, label: str, *, band: str = "", aside: bool = False) -> Column:
        return Column(
            key=key, label=label, band=band, unit="J", shown_in="Wh", decimals=2, aside=aside
        )

    # Beside the node's name and what stands out, a terminal has no room for all of them.
    several = len(summary.nodes) > 1
    return Table(
        key=GPU_ENERGY[0],
        title="GPU energy",
        columns=(
            Column(key="node", label="Node"),
            Column(key="gpu", label="GPU"),
            watt_hours("gross", "Gross", band="Energy"),
            watt_hours("idle", "Idling", band="Energy"),
            watt_hours("net", "Net", band="Energy"),
            watt_hours("uncertainty", "±", band="Energy"),
            Column(key="source", label="By"),
            watt_hours("integrated", "By power", aside=several),
            Column(key="apart", label="Apart", unit="%", decimals=1),
            Column(key="idle_power", label="Idle", unit="W", decimals=0, aside=several),
        ),
        rows=tuple(_gpu_row(node, gpu) for node in summary.nodes for gpu in node.gpus),
        note=" ".join(_notes(summary.gpus)),
    )


def _gpu_row(node: NodeSummary, gpu: GpuSummary) -> dict[str, Cell]:
    energy = gpu.energy
    if energy.counted_with is not None:
        return {"node": node.name, "gpu": gpu.position, "source": f"GPU {energy.counted_with}"}
    return {
        "node": node.name,
        "gpu": gpu.position,
        "gross": gpu.energy_j,
        "idle": energy.idle_j,
        "net": energy.net_j,
        "uncertainty": energy.uncertainty_j,
        "source": _FROM.get(gpu.energy_source),
        "integrated": energy.integrated_j,
        "apart": energy.apart_percent,
        "idle_power": energy.idle_power_w,
    }


def _notes(gpus: Sequence[GpuSummary]) -> Iterable[str]:
    known = [gpu for gpu in gpus if not isinstance(gpu.energy_j, Missing)]
    yield "Gross is all energy that was drawn; net is the part above idling."
    if not all(gpu.energy.idle_is_unused for gpu in known):
        yield (
            "Idling is the lowest power of the run, since the job is not known to have left the "
            "GPU alone at any time: net may be too low."
        )
    yield "± is what the moments of reading may make it wrong by, the sensors' own error left out."
    yield "Apart is by how much the counter exceeds power times time."
    if any(gpu.energy_source == INTEGRATED and not gpu.energy.stuck_s for gpu in known):
        yield "If there is no counter, energy is power times time."
    if any(gpu.energy.stuck_s for gpu in known):
        yield "If a counter stood still, power times time is used instead."
    if lost := [gpu for gpu in known if gpu.energy.unread_s]:
        until = " and ".join(dict.fromkeys(map(_last_seen, lost)))
        yield f"{until}: the energy is at least the value shown."
    if any(gpu.energy.shares_with for gpu in known):
        yield "One counter serves both GPUs of a card: each figure is for both."
    yield from dict.fromkeys(filter(None, map(_whose, known)))


def _last_seen(gpu: GpuSummary) -> str:
    seconds = format_duration(gpu.energy.unread_s)
    return f"GPU {gpu.position} could not be read for the last {seconds}"


def _whose(gpu: GpuSummary) -> str:
    """Say what a counter counts where that is not the GPU alone."""
    if gpu.device.energy_of == "module":
        return f"The counter of {gpu.device.name} is its whole module's, CPU cores included."
    if gpu.device.energy_of == "package" and not gpu.energy.shares_with:
        return (
            f"GPU {gpu.position} has the counter of its card, whose other GPU is not this "
            "run's: somebody else's work may be in it."
        )
    return ""
