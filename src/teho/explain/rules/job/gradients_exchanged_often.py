"""The ranks exchange their gradients several times for each step."""

from __future__ import annotations

import re

from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.program import Doing, MainProcess
from teho.model.watched import State

RANK = 264
SEVERITY = "warning, remark"
THRESHOLDS = {
    "exchanges_min": chosen(
        3.0,
        "times",
        "a program that calls its model for two inputs before each `backward` counts twice",
    ),
}
SAME_LOSS_AS = ("ranks_wait_for_each_other",)

_BACKWARD = re.compile(r"\bbackward\(")


def judge(context: ProgramContext) -> Findings:
    """Compare the exchanges of gradients that PyTorch counted in the first step with one.

    A program that adds up the gradients of several batches needs only the last exchange.
    """
    for main in context.mains[:1]:
        count = main.library.get("exchanges_in_first_step")
        if not isinstance(count, int) or count < context.limit("exchanges_min"):
            return
        needless = 1 - 1 / count
        least = needless * main.percent(Doing.COMMUNICATING) / 2
        most = needless * (main.percent(Doing.COMMUNICATING) + _others_percent(main))
        is_loss = context.is_loss(most / 100 * main.process.wall_s, main)
        yield context.finding(
            Severity.WARNING if is_loss else Severity.REMARK,
            f"The ranks exchanged their gradients {count} times for each step.",
            evidence=(
                Evidence("exchanges in the first step", count),
                Evidence("communicating", main.percent(Doing.COMMUNICATING), "%"),
                Evidence("backward, in other threads", _others_percent(main), "%"),
            ),
            action=(
                "One exchange is enough, at the last of the batches whose gradients are added up: "
                "put the `forward` and `backward` of the other batches into "
                "`with model.no_sync():`. Accelerate does this in `accelerator.accumulate(model)`."
            ),
            regain_percent=(least, most) if is_loss else None,
        )


def _others_percent(main: MainProcess) -> float:
    """Return the share of the time in % that `backward` waited for other threads.

    They compute or exchange gradients; stacks do not say which.
    """
    wall_s = sum(
        seen.wall_s
        for seen in main.process.stacks
        if seen.state is State.THREADS and any(_BACKWARD.search(one.text) for one in seen.frames)
    )
    return 100 * wall_s / main.process.wall_s
