"""From what is known about a run to its `Report`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from teho.explain.analysis import Analysis
from teho.explain.roofline import rooflines_of
from teho.explain.run_verdict import verdict_of
from teho.explain.trial import without_expected
from teho.model.document import Item, Listing, Report
from teho.model.finding import Finding
from teho.profile.figures import shown_trace
from teho.show.build.report.bill import bill_facts, bill_if_job
from teho.show.build.report.drawn import Drawn, drawn_of
from teho.show.build.report.drivers import driver_table
from teho.show.build.report.facts import facts_of
from teho.show.build.report.native import native_tables
from teho.show.build.report.profiled import profiled_commands, profiled_notes
from teho.show.build.report.roofline import rooflines_view
from teho.show.build.report.step import clock_notes, gaps
from teho.show.build.report.time import time_tables
from teho.show.build.report.troubles import notes_of, troubles_of
from teho.version import __version__

__all__ = ["build_report"]


def build_report(analysis: Analysis, *, plots: bool = True, drawn: Drawn | None = None) -> Report:
    """Lay out the report on a run.

    Args:
        analysis: what is known about the run.
        plots: whether to include every metric over time; text does not need them.
        drawn: the large parts, if they are laid out already.
    """
    run, state, summary = analysis.run, analysis.state, analysis.summary
    drawn = drawn or drawn_of(analysis, plots=plots)
    verdict, severity = verdict_of(analysis)
    rooflines, unplaced = rooflines_of(run, summary, analysis.policy)
    billed = bill_if_job(run, summary)
    processes = analysis.processes
    traced = analysis.profiled
    return Report(
        title=run.name or run.id,
        run_id=run.id,
        name=run.name,
        command=shlex.join(run.command),
        state=state.value,
        verdict=verdict,
        verdict_severity=severity,
        facts=(*facts_of(analysis), *bill_facts(billed, state)),
        tables=(
            *time_tables(summary.program, len(processes), summary.elapsed_s),
            *native_tables(run),
            *drawn.tables,
            *driver_table(run),
        ),
        findings=without_expected(run, analysis.main_findings),
        lists=_hints(analysis.hints),
        abstentions=(*analysis.abstentions, *([unplaced] if unplaced else [])),
        # Without the probe, the report has no table of the time: the reader must know why.
        troubles=(
            *gaps(run, state, summary),
            *troubles_of(run, analysis.problems),
            *notes_of(run, about_probe=True),
        ),
        notes=(
            *clock_notes(run),
            *notes_of(run, about_probe=False),
            *(billed.notes if billed else ()),
            *profiled_notes(processes),
            *([analysis.trace_problem] if analysis.trace_problem else []),
        ),
        commands=tuple(profiled_commands(run.id, processes)),
        plots=drawn.plots,
        heat_map=drawn.heat_map,
        rooflines=rooflines_view(rooflines, len(summary.nodes)),
        step=shown_trace(traced.traces).picture if traced else None,
        teho_version=__version__,
    )


def _hints(hints: Sequence[Finding]) -> tuple[Listing, ...]:
    if not hints:
        return ()
    items = tuple(Item(text=f"{hint.sentence} {hint.action}") for hint in hints)
    return (Listing(key="hints", title="Hints", items=items, level="why"),)
