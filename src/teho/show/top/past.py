"""The pace and the cost of a finished run at an earlier moment, for a replay."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from teho.explain.step import offset_s
from teho.model.document import Fact
from teho.model.missing import Missing, Reason
from teho.model.program import Program
from teho.model.run import Run, RunState
from teho.model.summary import Summary
from teho.show.build.report.bill import bill_facts, bill_if_job
from teho.show.build.report.pace import pace_facts

__all__ = ["facts_at"]


def facts_at(run: Run, summary: Summary, at_s: float) -> Iterable[Fact]:
    """Yield the pace and the cost as the report had them during the run.

    Args:
        run: its description.
        summary: of the whole run.
        at_s: seconds after the start of the run.
    """
    then = msgspec.structs.replace(
        summary, elapsed_s=at_s, program=_program_at(run, summary.program, at_s)
    )
    yield from pace_facts(RunState.RUNNING, then)
    billed = bill_if_job(run, then)
    if billed is not None:
        # What was not used is known only for the whole run.
        unused = Missing(Reason.UNRECORDED)
        yield from bill_facts(msgspec.structs.replace(billed, unused=unused), RunState.RUNNING)


def _program_at(run: Run, program: Program | None, at_s: float) -> Program | None:
    """Return the process whose pace the report shows, with the steps until a moment."""
    main = program.mains[0] if program and program.mains else None
    node = run.node(main.process.node) if main else None
    if main is None or node is None or node.started_s is None:
        return None
    until_s = node.started_s + at_s - offset_s(run, node)
    process = msgspec.structs.replace(
        main.process,
        until_s=until_s,
        progress=tuple(one for one in main.process.progress if one.last_s <= until_s),
    )
    return Program(mains=(msgspec.structs.replace(main, process=process),))
