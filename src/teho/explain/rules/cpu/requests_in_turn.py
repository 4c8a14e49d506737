"""Requests of coroutines wait for each other, although they do not need each other.

In the first case, a coroutine waits for a request, and only then sends the next request. The stacks
show that the event loop waited for only this request, and whether the same loop of the program
computed at other times. The program's source shows that the next request does not need the last
answer. In the second case, a task holds a lock of asyncio while it waits for a request, and the
stacks show that other tasks wait for a lock. In both cases, each request or each task has its own
connection. Teho does not know whether the server answers several requests at the same time.

In the third case, a loop sends requests in blocks with `asyncio.gather`, and the next block begins
when the slowest request of a block is ready. The stacks show for how long only one request was
open.
"""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.coroutines import CallTime, in_turn_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.in_source import Block, InTurn
from teho.model.program import MainProcess
from teho.model.stack import Frame
from teho.patterns import lazy_pattern

RANK = 209
SEVERITY = "critical, warning"
THRESHOLDS = {
    "together_percent": chosen(
        20.0, "%", "if other tasks wait at the same time for longer, requests are not in turn"
    ),
    "computing_percent": chosen(
        10.0,
        "%",
        "below this limit, the loop does little except waiting: time is saved only if the server "
        "answers several requests at the same time",
    ),
}
SAME_LOSS_AS = ("known_activity",)
_HEAD = lazy_pattern(r"for (.+?) in (.+)")
_LEAST, _MOST = 0.5, 0.9
"""Part that is saved: at least half of the smaller one of waiting and computing, which then happen
at the same time, and at most almost all waiting, if the server answers many requests at once."""
_LEAST_OF_BLOCKS = 0.4
"""With blocks of two requests, almost half of the time with only one request is saved."""
_LEAST_LOCKED = 0.3
"""At least one other task waits for the lock. With two tasks, half of the waiting is saved."""


def judge(context: ProgramContext) -> Findings:
    """Find requests that wait for each other, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in in_turn_times(main):
            turn = time.in_loop
            if not isinstance(turn, InTurn) or not context.is_loss(time.wall_s, main):
                continue
            if turn.block is not None:
                if context.is_loss(time.alone_s, main):
                    yield _in_blocks(context, main, time, turn, turn.block)
                    return
                continue
            if turn.lock is not None:
                locked = _of_lock(main, turn.lock)
                if context.is_loss(sum(one.locked_s for one in locked), main):
                    yield _with_lock(context, main, locked, turn.lock)
                    return
            computes = 100 * time.beside_s / main.process.wall_s
            together = 100 * time.together_s / time.wall_s
            if turn.lock is not None or together >= context.limit("together_percent"):
                continue
            does_more = computes >= context.limit("computing_percent")
            yield (_in_loop if does_more else _only_waits)(context, main, time, turn)
            return


def _of_lock(main: MainProcess, lock: Frame) -> list[CallTime]:
    """Return the times of the requests that wait while a task holds this lock, by their lines."""
    found = [
        time
        for time in in_turn_times(main)
        if isinstance(time.in_loop, InTurn) and time.in_loop.lock == lock and time.locked_s > 0
    ]
    return sorted(found, key=lambda time: time.in_loop.call.line)


def _with_lock(
    context: ProgramContext, main: MainProcess, times: list[CallTime], lock: Frame
) -> Located:
    locked_s = sum(time.locked_s for time in times)
    share = min(100.0, 100 * locked_s / main.process.wall_s)
    turns = [time.in_loop for time in times if isinstance(time.in_loop, InTurn)]
    calls = [f"`{turn.call_text}`" for turn in turns]
    places = [f"{call} at {turn.call.short_place}" for call, turn in zip(calls, turns, strict=True)]
    rest = "" if len(turns) == 1 else " If no other line is left inside the lock, remove the lock."
    return context.lost(
        f"For {share:.0f} % of the run time, one task waited for {' or '.join(places)}, and other "
        "tasks waited for the lock that this task held: "
        f"`{lock.short_text}` at {lock.short_place}.",
        share_percent=share,
        evidence=(Evidence("time in which one task waited and held the lock", share, "%"),),
        action=(
            f"If the lock protects only data of the program, {_outside(turns, lock)} The requests "
            f"of all tasks then wait at the same time.{rest} If the server permits only a few "
            "requests at a time, use `asyncio.Semaphore(4)` around the request. If it permits only "
            "one, the lock is right."
        ),
        judged_by=[],
        regain_percent=(_LEAST_LOCKED * share, _MOST * share),
        lines=[(time.in_loop.call, time.locked_s) for time in times],
        mutes=False,
        certainty=Certainty.POSSIBLE,
    )


def _outside(turns: Sequence[InTurn], lock: Frame) -> str:
    """Return how to make the requests outside of the block of a lock."""
    first = turns[0]
    if first.moved is None:
        calls = " and ".join(f"`{turn.call_text}`" for turn in turns)
        return f"await {calls} before `{lock.short_text}`, and change the data inside."
    begin, end = first.moved
    lines = f"lines {begin} to {end}" if end > begin else f"line {begin}"
    text = f"move {lines} of {lock.short_place.rpartition(':')[0]} out of the block"
    if end >= first.last:
        return f"{text}, directly after it, with less indentation."
    return (
        f"{text}: end the block before line {begin}, and put the lines after line {end} into a "
        f"second block `{lock.short_text}:`."
    )


def _in_blocks(
    context: ProgramContext, main: MainProcess, time: CallTime, turn: InTurn, block: Block
) -> Located:
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    alone = min(share, 100 * time.alone_s / main.process.wall_s)
    loop = turn.loop
    return context.lost(
        f"The loop at {loop.short_place} sends requests in blocks of `{block.size}`, and each "
        f"block waits for its slowest request: for {alone:.0f} % of the run time, only one request "
        "was open.",
        share_percent=alone,
        evidence=(
            Evidence("time in which only one request of a block was open", alone, "%"),
            Evidence("time in which the loop waited for a block", share, "%"),
            Evidence("loop", f"{loop.short_place}  {loop.short_text}"),
        ),
        action=(
            "Send all requests with one `gather`, and limit them with a semaphore: the next "
            "request then begins as soon as another one ends. Before the loop, write `limit = "
            f"asyncio.Semaphore({block.size})`, and define `async def limited(request):` with the "
            "two lines `async with limit:` and `return await request`, the second one indented "
            "under the first. Replace the loop by `await asyncio.gather(*(limited("
            f"{block.request}) {block.every}){block.options})`: it returns all results in the same "
            "order."
        ),
        judged_by=[],
        regain_percent=(_LEAST_OF_BLOCKS * alone, _MOST * share),
        lines=[(turn.call, time.wall_s)],
        mutes=False,
        certainty=Certainty.LIKELY,
    )


def _in_loop(context: ProgramContext, main: MainProcess, time: CallTime, turn: InTurn) -> Located:
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    computes = 100 * time.beside_s / main.process.wall_s
    call, loop = turn.call, turn.loop
    return context.lost(
        f"The loop at {loop.short_place} spent {share:.0f} % of the run time waiting for "
        f"`{turn.call_text}`, and {computes:.0f} % computing, but never both at the same time.",
        share_percent=share,
        evidence=(
            Evidence("time in which the loop waited for a request", share, "%"),
            Evidence("time in which the loop computed", computes, "%"),
            Evidence("loop", f"{loop.short_place}  {loop.short_text}"),
        ),
        action=(
            "Begin requests early: no request needs the answer to an earlier request. Before the "
            f"loop, write `tasks = [asyncio.create_task({turn.call_text}) {_for(turn)}]` and "
            f"`limit = asyncio.Semaphore(4)`. {_awaiting(turn)} In the function that makes the "
            "request, write `async with limit:` around the request: at most 4 requests are then "
            "open at the same time. Even with `Semaphore(1)`, the server works while the program "
            "computes."
        ),
        judged_by=["computing_percent"],
        regain_percent=(_LEAST * min(share, computes), _MOST * share),
        lines=[(call, time.wall_s)],
        mutes=False,
        certainty=Certainty.POSSIBLE,
    )


def _only_waits(
    context: ProgramContext, main: MainProcess, time: CallTime, turn: InTurn
) -> Located:
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    call, loop = turn.call, turn.loop
    limited = (
        "If there are very many requests, write `limit = asyncio.Semaphore(20)` before them, and "
        "`async with limit:` around the request in the function that makes it."
    )
    how = f"replace the loop by `{turn.gathered}`. {limited}" if turn.gathered else ""
    return context.lost(
        f"The loop at {loop.short_place} waited for `{turn.call_text}` for {share:.0f} % of the "
        "run time: it sends each request only after the answer to the request before.",
        share_percent=share,
        evidence=(
            Evidence("time in which the loop waited for a request", share, "%"),
            Evidence("loop", f"{loop.short_place}  {loop.short_text}"),
        ),
        action=(
            "No request needs the answer to an earlier request. If the server answers several "
            f"requests at the same time, {how or _early(turn)}"
        ),
        judged_by=["computing_percent"],
        regain_percent=(0.0, _MOST * share),
        lines=[(call, time.wall_s)],
        mutes=False,
        certainty=Certainty.POSSIBLE,
    )


def _early(turn: InTurn) -> str:
    return (
        "begin them early: before the loop, write `tasks = [asyncio.create_task("
        f"{turn.call_text}) {_for(turn)}]` and `limit = asyncio.Semaphore(20)`. {_awaiting(turn)} "
        "In the function that makes the request, write `async with limit:` around the request."
    )


def _awaiting(turn: InTurn) -> str:
    """Return the advice on the loop: which lines it gets."""
    head = _HEAD.fullmatch(_for(turn))
    if head is None:
        return f"In the loop, await these tasks in the same order, instead of `{turn.call_text}`."
    target = f"({head[1]})" if "," in head[1] else head[1]
    return (
        f"Change the first line of the loop to `for {target}, task in zip({head[2]}, tasks):`, and "
        f"write `await task` instead of `await {turn.call_text}`."
    )


def _for(turn: InTurn) -> str:
    """Return the loop as it is in a comprehension: `for page in pages`."""
    return turn.loop.text.rstrip(":")
