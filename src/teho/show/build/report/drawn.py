"""The large parts of a report, which need no findings: the tables of the devices, and the plots."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from teho.explain.analysis import Analysis
from teho.explain.shared_thresholds import OUTLIERS
from teho.model.document import Plot, Table
from teho.show.build.report.plots import heat_map_of, plots_of
from teho.show.build.report.tables import tables_of

__all__ = ["Drawn", "drawn_of"]

_IN_FACTS = frozenset({"cpus", "memory", "io"})
"""Tables that say little more than the facts if they have one row."""
_IN_DETAIL = frozenset({"gpu_energy", "node_energy"})
"""Tables whose sum is among the facts."""


def _leveled(table: Table) -> Table:
    is_detail = table.key in _IN_DETAIL or (table.key in _IN_FACTS and len(table.rows) == 1)
    return msgspec.structs.replace(table, level="why") if is_detail else table


class Drawn(NamedTuple):
    """The tables of the devices, and the plots: the large parts, which need no findings."""

    tables: tuple[Table, ...]
    plots: tuple[Plot, ...]
    heat_map: Plot | None


def drawn_of(analysis: Analysis, *, plots: bool) -> Drawn:
    """Lay out the large parts of a report; the findings of the analysis are not needed."""
    run, state, summary = analysis.run, analysis.state, analysis.summary
    limits = analysis.policy.thresholds[OUTLIERS]
    return Drawn(
        tuple(map(_leveled, tables_of(run, state, summary, limits))),
        tuple(plots_of(summary)) if plots else (),
        heat_map_of(summary) if plots else None,
    )
