"""The report in the layout of `seff`, for scripts that read the output of `seff`.

The GPU tables have the layout of CSC's `seff` (Puhti, Mahti). The head has the layout of the `seff`
in Slurm's contributions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from teho.model.document import Cell, Report, Table
from teho.model.missing import Missing
from teho.show.cells import plain
from teho.units import convert, format_clock

__all__ = ["render_seff"]

_NOT_AVAILABLE = "N/A"
_RULE = "-" * 72


def render_seff(view: Report) -> str:
    """Render the head and the GPU tables of a job; ends in a line break.

    A line of the head without a figure is left out. A missing figure of a GPU is `N/A`, with the
    same width.
    """
    facts = {
        fact.key: fact.value
        for fact in view.facts
        if fact.value is not None and not isinstance(fact.value, Missing)
    }
    sections = ["\n".join(_head(facts))] if facts else []
    table = next((table for table in view.tables if table.key == "gpus"), None)
    if table is not None and table.rows:
        sections.append(f"\n{_RULE}\n".join(_gpu_sections(table)))
    return "".join(f"{section}\n" for section in sections if section)


def _head(facts: dict[str, str | float | int]) -> Iterator[str]:
    for key, label in (
        ("job_id", "Job ID"),
        ("cluster", "Cluster"),
        ("state_words", "State"),
        ("node_count", "Nodes"),
        ("cores_per_node", "Cores per node"),
    ):
        if key in facts:
            yield f"{label}: {_word(facts[key])}"
    used_s, reserved_s = _number(facts, "cpu_used_s"), _number(facts, "core_walltime_s")
    if used_s is not None:
        yield f"CPU Utilized: {format_clock(used_s)}"
    if used_s is not None and reserved_s:
        share = 100 * used_s / reserved_s
        yield f"CPU Efficiency: {share:.2f}% of {format_clock(reserved_s)} core-walltime"
    elapsed_s = _number(facts, "elapsed_s")
    if elapsed_s is not None:
        yield f"Job Wall-clock time: {format_clock(elapsed_s)}"
    peak = _number(facts, "memory_peak_bytes")
    limit = _number(facts, "memory_limit_bytes")
    if peak is not None:
        yield f"Memory Utilized: {_size(peak)}"
    if peak is not None and limit:
        yield f"Memory Efficiency: {100 * peak / limit:.2f}% of {_size(limit)}"


def _word(value: str | float) -> str:
    if isinstance(value, str):
        return plain(value)
    return str(int(value)) if value == int(value) else str(value)


def _number(facts: dict[str, str | float | int], key: str) -> float | None:
    value = facts.get(key)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _size(amount_bytes: float) -> str:
    """Write a size as `seff` does: powers of 1024 with the names KB, MB, GB."""
    value, units = amount_bytes / 1024, ("KB", "MB", "GB", "TB", "PB")
    index = 0
    while value >= 1024 and index < len(units) - 1:
        value /= 1024
        index += 1
    return f"{value:.2f} {units[index]}"


def _gpu_sections(table: Table) -> Iterator[str]:
    def column(key: str, unit: str = "", shown_in: str = "") -> list[str]:
        return [_figure(row.get(key), unit, shown_in) for row in table.rows]

    identity = (column("node"), column("gpu"))
    load = [column("load_mean"), column("load_std")]
    load.append([text.removesuffix(".00") for text in column("load_max")])
    memory = [column(f"memory_{part}", "bytes", "GiB") for part in ("mean", "std", "max")]
    energy = [column("energy", "J", "Wh")]
    yield _section(
        "GPU load ", ("Mean (%)", "stdDev (%)", "Max (%)"), [*identity, *load], "{:>13} "
    )
    yield _section(
        "GPU memory ", ("Mean (GiB)", "stdDev (GiB)", "Max (GiB)"), [*identity, *memory], "{:>13} "
    )
    # In the energy table of the original, the space is before each column, not after it.
    yield _section("GPU energy", ("Energy (Wh)",), [*identity, *energy], " {:>13}")


def _section(title: str, labels: tuple[str, ...], columns: list[list[str]], field: str) -> str:
    lines = [("Hostname", "GPU Id", *labels), *zip(*columns, strict=True)]
    return "\n".join([title, *("".join(field.format(text) for text in line) for line in lines)])


def _figure(cell: Cell, unit: str, shown_in: str) -> str:
    if cell is None or isinstance(cell, Missing):
        return _NOT_AVAILABLE
    if isinstance(cell, str):
        return plain(cell)
    if isinstance(cell, int) and not unit:
        return str(cell)
    return f"{convert(cell, unit, shown_in):.2f}" if math.isfinite(cell) else _NOT_AVAILABLE
