"""One worker of a pool has much more work than the other workers, which have to wait at the end."""

from __future__ import annotations

from teho.explain.options import options_of_rule
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

RANK = 268
SEVERITY = "critical, warning"
THRESHOLDS = {
    "waiting_percent": chosen(
        50.0,
        "%",
        "below this limit, the main process works too, and the workers may have to wait for the "
        "main process",
    ),
}
MUTES = ("python_bound", "serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says why most of the cores had no work"
_SETTING = lazy_pattern(r"\w+ ?=")
"""An option that is not a whole call: `chunksize=50`."""

_ACTION = (
    "Divide the work into many small parts, so that a free worker can take the next part: "
    "`Pool.imap_unordered(function, parts)`. Start with the longest parts."
)


def judge(context: ProgramContext) -> Findings:
    """Compare the time in which each worker of a process worked.

    With parts of equal size, all workers would work for the mean of these times. Only the excess of
    the worker that worked longest counts as lost. More workers than cores cannot work at once, so
    they are not judged.
    """
    for main in context.mains:
        workers = _pool_of(main)
        if not 2 <= len(workers) <= context.cores_of(main):
            continue
        waiting = main.percent(Doing.PROCESS, Doing.LOCK, Doing.WAITING, Doing.SLEEPING)
        if waiting < context.limit("waiting_percent"):
            continue
        times = sorted((one.ran_s for one in workers), reverse=True)
        mean_s = sum(times) / len(times)
        lost_s = times[0] - mean_s
        if not context.is_loss(lost_s, main):
            continue
        share = 100 * lost_s / main.process.wall_s
        large = next(options_of_rule(main, "workers_uneven"), None)
        yield context.lost(
            f"One of {len(workers)} worker processes did {100 * times[0] / sum(times):.0f} % of "
            f"the work while the other{'s' if len(workers) > 2 else ''} waited{_why(large)}.",
            share_percent=share,
            evidence=(
                Evidence("working time of the worker that worked longest", times[0], "s"),
                Evidence("mean working time of all workers", mean_s, "s"),
                Evidence("working time of the worker that worked shortest", times[-1], "s"),
            ),
            action=large[0] if large else _ACTION,
            regain_percent=(share / 2, share),
        )
        return


def _why(large: tuple[str, Frame] | None) -> str:
    """Return the option that gives each worker a large part of the tasks at once, if there is one.

    Args:
        large: the advice about this option, and its place.
    """
    if large is None:
        return ""
    at = large[1]
    if not _SETTING.match(at.text):
        return f": perhaps {at.short_place} makes one part for each worker"
    return f": `{at.short_text}` at {at.short_place} gives each worker many tasks at once"


def _pool_of(main: MainProcess) -> list[WatchedProcess]:
    """Return the child processes that existed for most of the time of the longest child."""
    longest_s = max((one.wall_s for one in main.children), default=0.0)
    return [one for one in main.children if 2 * one.wall_s >= longest_s]
