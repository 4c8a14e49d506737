"""Ranks spend much of their time exchanging data, or waiting for the slowest rank."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.rule import Evidence, Findings, Located, ProgramContext, Threshold, chosen
from teho.explain.wording import MOST_NAMED, the_ranks
from teho.model.program import Doing, MainProcess

RANK = 265
SEVERITY = "critical, warning"
THRESHOLDS = {
    "uneven_points": Threshold(
        20.0,
        "%",
        "for TraceML, a profiler for training, a difference of 20 % of the step time between one "
        "rank and the others is critical",
    ),
    "exchange_percent": chosen(
        15.0,
        "%",
        "below this limit, the time for exchanging gradients is normal in a training of several "
        "ranks",
    ),
}
SAME_LOSS_AS = ("input_of_one_rank_slower", "communication_bound", "rank_imbalance")


def judge(context: ProgramContext) -> Findings:
    """Compare the time that each rank spent in communication.

    A rank that has less work waits for the others inside the communication. So the rank that
    communicates least is the one for which the others wait, if the difference is large.
    """
    mains = context.mains
    shares = [(main, main.percent(Doing.COMMUNICATING)) for main in mains]
    losses = [main for main in mains if context.is_loss(main.seconds(Doing.COMMUNICATING), main)]
    if not losses:
        return
    least, most = (pick(shares, key=lambda pair: pair[1]) for pick in (min, max))
    if len(shares) > 1 and most[1] - least[1] >= context.limit("uneven_points"):
        yield _uneven(context, shares, least, most)
    elif sum(share for _, share in shares) >= context.limit("exchange_percent") * len(shares):
        yield _all(context, shares, most)


def _uneven(
    context: ProgramContext,
    shares: Sequence[tuple[MainProcess, float]],
    least: tuple[MainProcess, float],
    most: tuple[MainProcess, float],
) -> Located:
    busiest = least[0]
    lost = most[1] - least[1]
    name = _name(busiest)
    computing = [spent for spent in busiest.spent if spent.doing is not Doing.COMMUNICATING]
    return context.lost(
        f"The other ranks waited for {name}, up to {lost:.0f} % of the time: {name} has more work "
        "in each step.",
        share_percent=lost,
        evidence=_evidence(shares),
        action=(
            f"Give all ranks the same amount of work. Check what {name} does more than the others: "
            "larger batches, longer samples, logging, evaluation or saving."
        ),
        # With equal work, the slowest rank loses half of the difference for two ranks, nearly all
        # of it for many.
        regain_percent=(0.3 * lost, lost * (1 - 1 / max(2, len(shares)))),
        lines=computing[0].lines if computing else (),
    )


def _all(
    context: ProgramContext,
    shares: Sequence[tuple[MainProcess, float]],
    most: tuple[MainProcess, float],
) -> Located:
    mean = sum(share for _, share in shares) / len(shares)
    return context.lost(
        f"The ranks exchanged data for {mean:.0f} % of the time."
        if len(shares) > 1
        else f"Communication with other ranks took {mean:.0f} % of the time.",
        share_percent=mean,
        evidence=_evidence(shares),
        action=(
            "Exchange data less often: use a larger batch for each rank, or several batches for "
            "one step (`with model.no_sync():`). Exchange metrics only every 100 steps. Exchange "
            "fewer bytes, with DDP's `bf16_compress_hook`. Exchange fewer, larger messages: one "
            "`all_reduce` of all values instead of one `all_reduce` for each value. If the model "
            "is small, fewer ranks may be faster: `teho scale` measures this."
        ),
        judged_by=["exchange_percent"],
        regain_percent=(mean / 3, 0.9 * mean),
        lines=most[0].lines(Doing.COMMUNICATING),
    )


def _evidence(shares: Sequence[tuple[MainProcess, float]]) -> tuple[Evidence, ...]:
    ordered = sorted(shares, key=lambda pair: pair[1])
    shown = ordered if len(ordered) <= MOST_NAMED else [ordered[0], ordered[-1]]
    return tuple(Evidence(f"communicating, {_name(main)}", share, "%") for main, share in shown)


def _name(main: MainProcess) -> str:
    rank = main.library.get("rank")
    return the_ranks([rank]) if isinstance(rank, int) else f"process {main.process.pid}"
