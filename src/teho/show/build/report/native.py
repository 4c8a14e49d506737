"""Table of the functions in which programs that are not Python used their CPU time."""

from __future__ import annotations

from collections.abc import Iterable

from teho.explain.lines import share_interval
from teho.explain.native import label_of, native_uses, top_line
from teho.model.document import Cell, Column, Table
from teho.model.native import FunctionUse, NativeProgram
from teho.model.run import Run

__all__ = ["native_tables"]

_LEAST_PERCENT = 1.0
"""Smaller shares are left out."""
_MOST_ROWS = 8
_MOST_PROGRAMS = 3
_LEAST_OF_ALL = 0.05
"""Programs with a smaller part of all samples are left out."""


def native_tables(run: Run) -> Iterable[Table]:
    """Yield the table of all programs with enough samples.

    Args:
        run: the description of the recording.
    """
    uses = sorted(native_uses(run), key=lambda use: -use.program.samples)
    whole = sum(use.program.samples for use in uses)
    uses = [use for use in uses if use.program.samples >= _LEAST_OF_ALL * whole][:_MOST_PROGRAMS]
    rows = [row for use in uses for row in _rows(use.program, use.node.name)]
    if not rows:
        return
    several = len({use.node.name for use in uses}) > 1
    sampled = sum(use.program.samples for use in uses)
    yield Table(
        key="functions",
        title="Functions of programs that are not Python",
        columns=(
            *((Column(key="node", label="Node"),) if several else ()),
            Column(key="program", label="Program"),
            Column(key="function", label="Function"),
            Column(key="share_percent", label="Share", unit="%", decimals=0),
            Column(key="interval", label="95 % CI"),
            Column(key="threads", label="Threads", decimals=0),
            Column(key="caller", label="Called by"),
            *((Column(key="line", label="Top line"),) if any(row["line"] for row in rows) else ()),
            Column(key="file", label="File", aside=True),
        ),
        rows=tuple(rows),
        note=f"{sampled} samples, {uses[0].program.rate_hz} per second of CPU time of each thread. "
        "A function of a library includes the functions that it calls. Time in the kernel is not "
        "included.",
    )


def _rows(program: NativeProgram, node: str) -> Iterable[dict[str, Cell]]:
    """Yield the rows of one program; functions without a name are one row for each file."""
    uses: dict[tuple[str, str, str], list[FunctionUse]] = {}
    for use in program.functions:
        uses.setdefault((label_of(use), use.file, use.caller), []).append(use)
    samples = {key: sum(one.samples for one in own) for key, own in uses.items()}
    for key in sorted(samples, key=lambda key: -samples[key])[:_MOST_ROWS]:
        share = 100 * samples[key] / program.samples
        interval = share_interval(share, program.samples)
        if share < _LEAST_PERCENT or interval is None or not key[0]:
            continue
        function, file, caller = key
        yield {
            "node": node,
            "program": program.name,
            "function": function,
            "share_percent": share,
            "interval": f"{interval[0]:.0f}–{interval[1]:.0f}",
            "threads": max(one.threads for one in uses[key]),
            "caller": caller,
            "line": top_line(uses[key]),
            "file": file,
        }
