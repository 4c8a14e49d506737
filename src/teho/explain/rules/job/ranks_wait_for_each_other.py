"""Ranks spend much of their time exchanging data, or waiting for the slowest rank."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from teho.explain.activities import activity_of
from teho.explain.messages import OBJECTS_OF_RANKS, exchanges_objects
from teho.explain.options import option_of_rule
from teho.explain.rank_excess import RankExcess, excess_of
from teho.explain.rule import Evidence, Findings, Located, ProgramContext, Threshold, chosen
from teho.explain.wording import MOST_NAMED, capital, the_ranks
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, State
from teho.patterns import lazy_pattern

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
        "below this limit, the time for exchanging gradients is normal in a training run with "
        "several ranks",
    ),
    "one_line_percent": chosen(
        50.0,
        "%",
        "if a line that only the slowest rank executes takes more than this share of the "
        "difference between the ranks, this line is the main reason for the difference",
    ),
}
_WAITS = {
    Doing.SLEEPING: "sleeps",
    Doing.DISK: "waits for the disk",
    Doing.NETWORK: "waits for the network",
    Doing.PROCESS: "waits for another process",
    Doing.LOCK: "waits for a lock",
}
"""Activities of a rank that does not work, and the words for them."""
_UNEQUAL_PARTS = (
    "Give all ranks the same amount of work. If the parts of your data are sorted, for example by "
    "length, do not give each rank one block of neighbouring parts. If there are n ranks, give "
    "each rank every n-th part: `parts[rank::world_size]`."
)
_GATHER_LESS = (
    "If a rank needs only a part of the data of another rank, such as the rows at the border of "
    "its part of a grid, exchange only these rows: `dist.isend(row, dst=…)` and `dist.irecv(row, "
    "src=…)`. If the data are only printed or saved, gather them only every 100 steps. "
)
_REDUCE_TOGETHER = (
    "If this line runs once for each tensor, exchange all tensors with one call: `flat = "
    "torch.cat([p.grad.flatten() for p in model.parameters()])`, `dist.all_reduce(flat)`, and copy "
    "the parts of `flat` back into the gradients. Or use `DistributedDataParallel(model)` instead "
    "of this line: it does the same while it still computes. If the line exchanges metrics, call "
    "it only every 100 steps. Use a larger batch for each rank. "
)
_CALLS = (
    (lazy_pattern(r"\b(all_gather|gather|broadcast)\w*\("), _GATHER_LESS),
    (lazy_pattern(r"\b(all_reduce|reduce)\w*\("), _REDUCE_TOGETHER),
)
"""Calls in the slowest line that exchange data, and the advice for each."""
_FEWER_EXCHANGES = (
    "Exchange data less often: use a larger batch for each rank, or several batches for one step "
    "(`with model.no_sync():`). Exchange metrics only every 100 steps. Exchange fewer bytes, with "
    "DDP's `bf16_compress_hook`. Exchange fewer, larger messages: one `all_reduce` of all values "
    "instead of one `all_reduce` for each value. "
)
_FEWER_RANKS = "If the model is small, fewer ranks may be faster: `teho scale` measures this."
_SLEEP = lazy_pattern(r"\bsleep\((\d+(?:\.\d+)?)\)")
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
    elif _is_for_objects(context, mains[0]):
        return  # the rule known_activity says more
    elif sum(share for _, share in shares) >= context.limit("exchange_percent") * len(shares):
        yield _all(context, shares, most)


def _is_for_objects(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether most of the communication exchanges Python objects."""
    objects_s = 0.0
    for seen in main.process.stacks:
        activity = activity_of(msgspec.structs.replace(seen, state=State.PYTHON))
        if activity is not None and activity.name == OBJECTS_OF_RANKS:
            objects_s += seen.wall_s  # also while it waits for the objects of the other ranks
    is_most = 2 * objects_s >= main.seconds(Doing.COMMUNICATING)
    return is_most and exchanges_objects(context, main)


def _uneven(
    context: ProgramContext,
    shares: Sequence[tuple[MainProcess, float]],
    least: tuple[MainProcess, float],
    most: tuple[MainProcess, float],
) -> Located:
    busiest = least[0]
    lost = most[1] - least[1]
    name = _name(busiest)
    wait = _wait(busiest, [main for main, _ in shares if main is not busiest])
    if wait is not None:
        lines = busiest.lines(wait)
        frame = lines[0][0] if lines else None
        return context.lost(
            f"{capital(name)} made the other ranks wait for up to {lost:.0f} % of the time: "
            f"{name} {_WAITS[wait]}{_place(frame)}.",
            share_percent=lost,
            evidence=(
                *_evidence(shares),
                Evidence(f"time spent on {wait.value} ({name})", busiest.percent(wait), "%"),
            ),
            action=_instead(wait, name, frame),
            # A part of the wait may be for work that has to be done.
            regain_percent=(0.3 * lost, lost),
            lines=lines,
        )
    excess = excess_of(busiest, [main for main, _ in shares if main is not busiest])
    least_percent = context.limit("one_line_percent") * lost / 100
    if excess is not None and excess.share_percent >= least_percent:
        return context.lost(
            f"{capital(name)} made the other ranks wait for up to {lost:.0f} % of the time: only "
            f"{name} executes `{excess.frame.short_text}` ({excess.frame.short_place})"
            f"{_which(excess)}.",
            share_percent=lost,
            evidence=(
                Evidence(f"time of this line ({name})", excess.share_percent, "%"),
                *_evidence(shares),
            ),
            action=_shared(excess, name),
            regain_percent=(0.3 * lost, lost * (1 - 1 / max(2, len(shares)))),
            lines=((excess.frame, excess.share_percent * busiest.process.wall_s / 100),),
        )
    has_steps = bool(busiest.process.progress)
    split = option_of_rule(busiest, "ranks_wait_for_each_other")
    computing = [spent for spent in busiest.spent if spent.doing is not Doing.COMMUNICATING]
    return context.lost(
        f"{capital(name)} made the other ranks wait for up to {lost:.0f} % of the time: {name} "
        f"has more work{' in each step' if has_steps else ''}.",
        share_percent=lost,
        evidence=_evidence(shares),
        action=split
        if split is not None
        else _UNEQUAL_PARTS
        if not has_steps
        else (
            "Give all ranks the same amount of work. If the samples are sorted, for example by "
            "length, and each rank gets one block of neighbouring samples, give each rank every "
            "n-th batch instead: `batches[rank::world_size]`. Otherwise, check which additional "
            f"work {name} has: larger batches, longer samples, logging, evaluation or saving."
        ),
        # With equal work, the slowest rank loses half of the difference for two ranks, nearly all
        # of it for many.
        regain_percent=(0.3 * lost, lost * (1 - 1 / max(2, len(shares)))),
        lines=computing[0].lines if computing else (),
    )


def _which(excess: RankExcess) -> str:
    """Return what the line does: `, which evaluates the model`."""
    if excess.evaluates:
        return ", which applies the model without a backward pass"
    if excess.saves:
        return ", which saves data"
    return f": {excess.activity.what}" if excess.activity is not None else ""


def _shared(excess: RankExcess, name: str) -> str:
    """Return the advice: the other ranks do a part of the work, or the rank does less of it."""
    at = excess.frame.short_place
    if excess.evaluates:
        return (
            f"Let each rank evaluate a part of the data: execute {at} on all ranks, and give it "
            "every n-th sample, `x[rank::world_size]` and `y[rank::world_size]` instead of `x` and "
            "`y`. Then add up the results of all ranks, such as the number of correct samples: "
            "`total = torch.tensor(float(hits))`, `dist.all_reduce(total)`. Only printing stays "
            f"on {name}."
        )
    if excess.saves:
        return (
            f"Save less often at {at}, or save in a thread during the next steps: first copy the "
            "state, `state = {key: value.detach().cpu().clone() for key, value in "
            "model.state_dict().items()}`, then call `threading.Thread(target=torch.save, "
            "args=(state, path)).start()`."
        )
    if excess.activity is not None:
        return f"The other ranks wait for {at}. {excess.activity.advice}"
    return (
        f"Let all ranks share this work: execute {at} on all ranks, and let each rank work on "
        "every n-th item, `items[rank::world_size]`. Then collect the results with "
        "`dist.all_reduce` or `dist.gather_object`. If the work is only for a log or a plot, do "
        "it less often."
    )


def _wait(busiest: MainProcess, others: Sequence[MainProcess]) -> Doing | None:
    """Return what the rank waits for, if it mainly waits during the time that it loses.

    Only what it does for longer than the other ranks counts.
    """
    more: dict[Doing, float] = {}
    for doing in Doing:
        mean = sum(main.percent(doing) for main in others) / max(1, len(others))
        if doing is not Doing.COMMUNICATING:
            more[doing] = max(0.0, busiest.percent(doing) - mean)
    waits = sum(more[doing] for doing in _WAITS)
    if 2 * waits <= sum(more.values()):
        return None
    return max(_WAITS, key=lambda doing: more[doing])


def _place(frame: Frame | None) -> str:
    """Return the call and its line: ` in `time.sleep(1.5)` (train.py:12)`."""
    if frame is None:
        return ""
    at = frame.short_place
    return f" in `{frame.short_text}` ({at})" if frame.text else f" at {at}"


def _instead(wait: Doing, name: str, frame: Frame | None) -> str:
    if wait is Doing.SLEEPING:
        found = _SLEEP.search(frame.text) if frame else None
        every = f"every {found[1]} s" if found else "now"
        return (
            "Do not sleep for a fixed time: let the rank wait for the event that it needs. If "
            "another rank writes a file, let all ranks call `dist.barrier()` after the file is "
            "written and before it is read. Or send the data with `dist.broadcast(...)`. Or check "
            f"for the event more often than {every}."
        )
    if wait is Doing.DISK:
        return (
            f"Check what only {name} reads or writes, such as a checkpoint, a log or the data "
            "set. Give each rank an equal part of this work, or do the work in a thread during "
            "the steps."
        )
    if wait is Doing.NETWORK:
        return (
            f"Check what only {name} requests over the network. Download these data before the "
            "job starts, or request them in a thread during the steps."
        )
    if wait is Doing.PROCESS:
        return (
            f"Check which process {name} waits for. Start this process earlier, and read its "
            "result only when the result is ready. Or divide the work of this process equally "
            "among the ranks."
        )
    return (
        f"Check which thread holds the lock that {name} waits for. Release the lock before long "
        "work, or give this work to all ranks in equal parts."
    )


def _all(
    context: ProgramContext,
    shares: Sequence[tuple[MainProcess, float]],
    most: tuple[MainProcess, float],
) -> Located:
    mean = sum(share for _, share in shares) / len(shares)
    lines = most[0].lines(Doing.COMMUNICATING)
    return context.lost(
        f"The ranks exchanged data for {mean:.0f} % of the time."
        if len(shares) > 1
        else f"Communication with other ranks took {mean:.0f} % of the time.",
        share_percent=mean,
        evidence=_evidence(shares),
        action=_exchange(lines) + _FEWER_RANKS,
        judged_by=["exchange_percent"],
        regain_percent=(mean / 3, 0.9 * mean),
        lines=lines,
    )


def _exchange(lines: Sequence[tuple[Frame, float]]) -> str:
    """Return the advice for the call in the slowest line, or for the gradients of a training."""
    text = lines[0][0].text if lines else ""
    return next((advice for call, advice in _CALLS if call.search(text)), _FEWER_EXCHANGES)


def _evidence(shares: Sequence[tuple[MainProcess, float]]) -> tuple[Evidence, ...]:
    ordered = sorted(shares, key=lambda pair: pair[1])
    shown = ordered if len(ordered) <= MOST_NAMED else [ordered[0], ordered[-1]]
    return tuple(
        Evidence(f"time spent on communication ({_name(main)})", share, "%")
        for main, share in shown
    )


def _name(main: MainProcess) -> str:
    rank = main.library.get("rank")
    return the_ranks([rank]) if isinstance(rank, int) else f"process {main.process.pid}"
