"""The program waits for its data, and no other rule says why."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.kinds import STARVED
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.launchers.registry import launchers
from teho.model.missing import Missing, Reason

RANK = 200
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = STARVED
MUTES_BECAUSE = "this finding says what the program waits for, and the GPU is idle during this time"

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
        action=(
            "Do less for each sample in the lines below: decode and cut the samples before the "
            f"job, and store the result{context.or_keep_data(waiting.main)}. More cores would also "
            "help."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )


def _is_python(command: Sequence[str]) -> bool:
    """Return whether a command is known to start a Python program."""
    name = command[0].rpartition("/")[2] if command else ""
    launcher = launchers().get(name)
    starts_python = launcher is not None and launcher.own_processes
    return name.startswith("python") or name.endswith(".py") or starts_python
