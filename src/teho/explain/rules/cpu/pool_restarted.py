"""The program starts the worker processes of a pool again and again.

With the start methods `spawn` and `forkserver`, each new worker starts Python and imports all
modules of the program again. Before this is done, the worker cannot work. Teho reports pools that
the program makes one after the other, and pools whose workers end after a few tasks
(`maxtasksperchild=1`). The same workers can work for the whole run.
"""

from __future__ import annotations

from teho.explain.pools import (
    PoolRestarts,
    WorkersReplaced,
    lost_restarts,
    replaced_workers,
)
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, Threshold
from teho.model.program import MainProcess

RANK = 219
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}


def judge(context: ProgramContext) -> Findings:
    """Find the pools of the process that ran longest, and the time that their start took.

    The samples show for how long the workers imported modules. Python's own start has no samples:
    it counts as half of the time between the begin of a worker and its first sample.
    """
    for main in context.mains[:1]:
        replaced = replaced_workers(context, main)
        found = lost_restarts(context, main)
        if replaced is not None:
            yield _replaced(context, main, replaced)
        elif found is not None:
            yield _found(context, main, found)


def _found(context: ProgramContext, main: MainProcess, found: PoolRestarts) -> Located:
    workers = "one worker" if found.workers == 1 else f"{found.workers} workers"
    return _starts_of_workers(
        context,
        main,
        found,
        f"The program made {found.pools} pools of {workers}, one after the other"
        f"{_at(found)}. Each worker first started Python and imported all modules: this took ",
        Evidence("pools of worker processes", float(found.pools)),
        _action(found),
    )


def _replaced(context: ProgramContext, main: MainProcess, found: WorkersReplaced) -> Located:
    after = "a few tasks" if found.tasks is None else f"{found.tasks} tasks"
    after = "each task" if found.tasks == 1 else after
    return _starts_of_workers(
        context,
        main,
        found,
        f"The option `{found.option.short_text}` at {found.option.short_place} replaces the worker "
        f"processes of the pool after {after}. {found.replaced} new processes started Python and "
        "imported all modules: this took ",
        Evidence("new worker processes", float(found.replaced)),
        found.advice,
    )


def _starts_of_workers(
    context: ProgramContext,
    main: MainProcess,
    found: PoolRestarts | WorkersReplaced,
    begin: str,
    count: Evidence,
    action: str,
) -> Located:
    """Return the finding; its sentence begins with `begin`, and the share of the time follows."""
    wall_s = main.process.wall_s
    least = min(100.0, 100 * found.import_s / wall_s)
    most = min(100.0, 100 * (found.import_s + found.unseen_s) / wall_s)
    return context.lost(
        f"{begin}{_range(least, most)} % of the run time.",
        share_percent=(least + most) / 2,
        evidence=(
            count,
            Evidence("workers that imported modules or ended", found.import_s, "s"),
            Evidence("workers before their first sample", found.unseen_s, "s"),
        ),
        action=action,
        regain_percent=(least, most),
        lines=found.lines,
        certainty=Certainty.LIKELY,
    )


def _range(least: float, most: float) -> str:
    words = f"{least:.0f}", f"{most:.0f}"
    return words[0] if words[0] == words[1] else " to ".join(words)


def _at(found: PoolRestarts) -> str:
    if found.made is not None:
        return f", at {found.made.short_place}"
    return f", and waited for them at {found.lines[0][0].short_place}" if found.lines else ""


def _action(found: PoolRestarts) -> str:
    made = found.made
    is_executor = made is not None and "Executor(" in made.text
    call = made.short_text.partition(" as ")[0].removeprefix("with ") if made else "Pool(...)"
    end = "`pool.shutdown()`" if is_executor else "`pool.close()` and `pool.join()`"
    where = f" The call is now at {made.short_place}." if made else ""
    return (
        f"Make the pool only once, before the loop, and without `with`: `pool = {call}`.{where} "
        "Give `pool` as an argument to the functions that use it, and end it after the loop with "
        f"{end}. If the arguments of `initializer` differ between the pools, send them with the "
        "tasks instead."
    )
