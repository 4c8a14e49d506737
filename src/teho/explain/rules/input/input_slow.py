"""The program waits for its data, and no other rule says why."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.kinds import STARVED
from teho.explain.program_context import Waiting
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.launchers.registry import launchers
from teho.model.missing import Missing, Reason

RANK = 200
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = STARVED
MUTES_BECAUSE = "this finding says what the program waits for"

_PARALLEL = ("interleave", "map")
"""Calls of a `tf.data` pipeline that work on one sample after another, unless told otherwise."""
_UNSEEN = Missing(Reason.UNRECORDED, "no Python program was observed")


def judge(context: ProgramContext) -> Findings:
    """Find waiting for data that no other rule explains.

    This rule also abstains for all rules about the program's time, if a Python program was not
    observed.
    """
    if context.summary.program is None and _is_python(context.run.command):
        for node in context.summary.nodes:
            context.figure(node, "where the program's time went", _UNSEEN)
    waiting = context.waiting()
    if waiting is None:
        return
    yield context.lost_waiting(
        waiting,
        ".",
        evidence=(
            Evidence("workers", float(waiting.workers)),
            Evidence("cores", float(waiting.cores), "cores"),
        ),
        action=_of_tensorflow(waiting)
        or (
            "Do less for each sample in the lines below: decode and cut the samples before the "
            f"job, and store the result{context.or_keep_data(waiting.main)}. More cores would also "
            "help."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )


def _of_tensorflow(waiting: Waiting) -> str:
    """Return what a `tf.data` pipeline lacks; empty: nothing, or the loader is another one."""
    pipeline = waiting.settings.get("pipeline") or []
    serial = sorted(
        {
            call["call"]
            for call in pipeline
            if call["call"] in _PARALLEL and call.get("num_parallel_calls") in {None, 0, 1}
        }
    )
    changes = [f"`{name}(…, num_parallel_calls={waiting.cores})`" for name in serial]
    if pipeline and not any(call["call"] == "prefetch" for call in pipeline):
        changes.append("`.prefetch(tf.data.AUTOTUNE)` as the last call")
    if not changes:
        return ""
    made_at = waiting.loader.made_at
    at = (
        f" The pipeline ends in {made_at.file.rpartition('/')[2]}:{made_at.line}."
        if made_at
        else ""
    )
    return f"Let TensorFlow load in parallel: write {' and '.join(changes)}.{at}"


def _is_python(command: Sequence[str]) -> bool:
    """Return whether a command is known to start a Python program."""
    name = command[0].rpartition("/")[2] if command else ""
    launcher = launchers().get(name)
    starts_python = launcher is not None and launcher.own_processes
    return name.startswith("python") or name.endswith(".py") or starts_python
