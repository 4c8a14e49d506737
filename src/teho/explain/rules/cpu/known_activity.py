"""Much of the time went to something other than the program's main work.

The stacks show which activity this was, such as opening an archive again for each sample. The file
`activities.toml` lists the activities, the library functions that show each one, and the advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

import msgspec

from teho.explain import messages
from teho.explain.activities import (
    ANOMALY_MODE,
    Activity,
    ActivityKind,
    ActivityTime,
    activity_times,
    detects_anomalies,
)
from teho.explain.children import most_at_once
from teho.explain.compiles import compiled_again, compiles_again
from teho.explain.coroutines import (
    CallTime,
    in_turn_times,
    is_one_of_several,
    lost_in_turn_s,
    reopened_times,
)
from teho.explain.gpu_lines import gpu_lines
from teho.explain.kinds import INPUT_CAUSES
from teho.explain.messages import OBJECTS_PASSED, ObjectsMade, objects_made_around
from teho.explain.options import is_worth_naming, lines_of_option, option_of_rule, option_times
from teho.explain.pauses import WORKED_PERCENT, long_pauses
from teho.explain.plans import plan_times
from teho.explain.pools import POOL_STARTS, are_commands, lost_restarts, replaced_workers
from teho.explain.program_context import in_lines
from teho.explain.queries import column_filter, index_times, of_few_statements
from teho.explain.repeated import repeated_times
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.unneeded import unneeded_times
from teho.explain.where import is_for_next_task
from teho.explain.wholes import whole_times
from teho.explain.wording import capital, longest_places
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame

RANK = 205
SEVERITY = "critical, warning, remark, hint"
THRESHOLDS = {
    "work_percent": chosen(
        30.0, "%", "below this limit, the time for reading and preparing data is normal"
    ),
    "work_warning_percent": chosen(
        60.0, "%", "above this limit, little time is left for the steps of a training"
    ),
    "busy_cores_percent": chosen(
        75.0,
        "%",
        "if three quarters of the cores are busy, the processes for which the program waits use "
        "the cores well",
    ),
    "known_min_s": TEN_SAMPLES,
    "known_percent": chosen(
        20.0,
        "%",
        "an activity that takes less than 2 s counts only above this share: the program may have "
        "to do it once",
    ),
    "ended_children_min": chosen(
        3.0,
        "processes",
        "a program that waits for several short processes loses time after each process",
    ),
    "idle_children_percent": chosen(
        10.0,
        "%",
        "if child processes wait for tasks for more than this share of the time, they could do "
        "more work",
    ),
    "beside_waiting_percent": chosen(
        10.0,
        "%",
        "below this limit, the program does little except waiting, so waiting may be its purpose",
    ),
    "together_part": chosen(
        0.5,
        "of the activity",
        "if several coroutines wait at the same time for at least half of the time, they do not "
        "wait one after the other",
    ),
    "compiles_max": chosen(
        5.0,
        "times",
        "the rule fixed_costs_dominate uses the same threshold for one function of JAX",
    ),
    "named_part": chosen(
        0.7,
        "of the activity",
        "if most of the activity is work that a loop repeats, whose result is not used, or that "
        "an option or a missing index makes slow, the rules work_repeated, result_unused, "
        "option_costly and index_missing say more",
    ),
    "explains_percent": chosen(
        50.0, "%", "above this limit, the activity is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
SAME_LOSS_AS = INPUT_CAUSES
MUTES_BECAUSE = "if one activity takes most of the time, this finding says which activity"

_OF_OTHER_RULES = frozenset(("activations_recomputed",))
"""Activities of which another rule says more (anomaly mode: the rule debug_mode)."""
_SLEEPING, _ASYNCIO, _SERVER = "sleeping", "asyncio_waits", "server_awaited"
_STREAM, _IMPORTED = "stream_received", "imported_again"
_DATABASES = frozenset(("database", "rows_queried"))
"""Names in activities.toml."""
_COMPARE_COLUMN = (
    "Write the condition without the function. For example, to select one day, write "
    "`taken_at >= ? AND taken_at < ?`, and give the day and the next day as values. If the column "
    "has no index, create an index once: `CREATE INDEX name ON table (column)`."
)
_AWAIT = (
    "Instead of sleeping, call a function that returns as soon as a child process is ready: "
    "`Process.join()`, `Popen.wait()`, `Connection.recv()` or `Queue.get()`."
)
_IN_WORKERS = ", in the program's worker processes"
_WORKERS = (
    "Each command starts Python and imports the modules again. Instead of starting a command "
    "for each task, let a few worker processes do all tasks: "
    "`with concurrent.futures.ProcessPoolExecutor({}) as pool: results = list(pool.map(f, "
    "tasks))`. Here, `f` is the function that the command executes for one task."
)
_REGAIN_AWAITED = (0.1, 0.6)
"""Part of a sleep that is saved if the program wakes up as soon as its child processes are ready:
on average they are ready in the middle of a pause."""
_MOST_OF_A_LIFE = 0.9
"""A child process that lived for this part of the time did not end while the program waited."""
_OF_LISTS = frozenset(("lists_copied", "lists_searched"))
_OF_JAX = frozenset(("jax_compiled_again", "jax_traced_again"))


def judge(context: ProgramContext) -> Findings:
    """Find activities that took much of the time of the process that ran longest."""
    for main in context.mains[:1]:
        large = context.limit("known_percent"), context.limit("known_min_s")
        options = [
            one
            for one in option_times(main)
            if not (one.option.cores or one.option.waits)
            and is_worth_naming(context, main, one.wall_s, large)
        ]
        awaited = (*reopened_times(main), *_in_turn(context, main))
        wholes = [one for one in whole_times(main) if one.is_lost()]
        again: tuple[_Time, ...] = (*repeated_times(main), *unneeded_times(main), *wholes)
        named = _lost_in(context, main, *again, *index_times(main), *awaited).union(
            *(one.stacks for one in options)
        )
        if (beside_gpu := gpu_lines(context, main)) is not None:
            named = named.union(beside_gpu.stacks)
        # A function that a lazy table calls for each row would be slow in any case.
        read_again = _lost_in(context, main, *plan_times(main))
        # In a short run, the set-up takes a larger share than it will in a longer one.
        is_long = main.process.wall_s >= context.limit("work_min_s")
        times = activity_times(main, with_set_up=is_long)
        restarts = replaced_workers(context, main) or lost_restarts(context, main)
        objects = next(
            (one for one in times if one.activity.name == messages.OBJECTS_OF_RANKS), None
        )
        around = objects_made_around(main, objects) if objects else None
        if objects and around and _counts(context, main, objects, around):
            named = named.union(around.stacks)
        # What looks like the search in a list may be one in an array.
        on_arrays = lines_of_option(main, "whole_arrays")
        arrays = {
            seen.frames
            for seen in main.process.stacks
            if seen.frames[:1] and seen.frames[0] in on_arrays
        }
        for time in times:
            # JAX compiles and traces each function once: only the program's facts show repetition.
            most = context.limit("compiles_max")
            is_reported = time.activity.name in _OF_OTHER_RULES or (
                time.activity.name == ANOMALY_MODE and detects_anomalies(main)
            )
            is_reported |= (
                time.activity.name == OBJECTS_PASSED
                and messages.small_messages(context, main, time) is not None
            )
            is_reported |= time.activity.name in POOL_STARTS and restarts is not None
            is_reported |= time.activity.name == _SLEEPING and any(
                context.is_loss(one.lost_s, main) for one in long_pauses(main, WORKED_PERCENT.value)
            )
            is_once = time.activity.name in _OF_JAX and not compiles_again(
                main, most, partial(context.is_loss, main=main)
            )
            is_read = time.activity.kind is ActivityKind.WORK or time.activity.name in _DATABASES
            others = named | read_again if is_read else named
            if time.activity.name in _OF_LISTS:
                others |= arrays
            is_named = _part_of(time, others) >= context.limit("named_part")
            is_new = not (is_once or is_reported or is_named)
            more = around if time is objects else None
            if is_new and _counts(context, main, time, more):
                yield from _found(context, main, time, more)


class _Time(Protocol):
    """Time that another rule explains."""

    @property
    def wall_s(self) -> float: ...
    @property
    def stacks(self) -> Mapping[tuple[Frame, ...], float]: ...


def _lost_in(
    context: ProgramContext, main: MainProcess, *times: _Time
) -> frozenset[tuple[Frame, ...]]:
    """Return the stacks of the times that are long enough to report them."""
    return frozenset(
        stack for one in times if context.is_loss(one.wall_s, main) for stack in one.stacks
    )


def _in_turn(context: ProgramContext, main: MainProcess) -> list[CallTime]:
    """Return the requests of which the rule requests_in_turn says more."""
    least_s = context.limit("beside_waiting_percent") * main.process.wall_s / 100
    return [one for one in in_turn_times(main) if lost_in_turn_s(one) >= least_s]


def _part_of(time: ActivityTime, stacks: frozenset[tuple[Frame, ...]]) -> float:
    """Return the part of an activity's time that is in some stacks, from 0 to 1."""
    return sum(s for frames, s in time.stacks.items() if frames in stacks) / time.wall_s


def _counts(
    context: ProgramContext, main: MainProcess, time: ActivityTime, around: ObjectsMade | None
) -> bool:
    """Return whether an activity, with the conversions around it, took enough time to report it.

    What is never useful needs few samples, and so does a large overhead.
    """
    activity = time.activity
    wall_s = time.wall_s + (around.wall_s if around else 0.0)
    share = 100 * wall_s / context.work_s(main)
    limit = context.limit("lost_percent")
    least = activity.least_percent or limit
    if wall_s >= context.limit("lost_min_s"):
        return share >= least
    if activity.kind is not ActivityKind.OVERHEAD or activity.may_be_purpose:
        return False
    enough = least if least < limit else max(least, context.limit("known_percent"))
    return wall_s >= context.limit("known_min_s") and share >= enough


def _found(
    context: ProgramContext, main: MainProcess, time: ActivityTime, around: ObjectsMade | None
) -> Findings:
    activity = time.activity
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    is_work = activity.kind is ActivityKind.WORK
    if is_work and share < context.limit("work_percent"):
        return
    judged_by = ["work_percent", "work_warning_percent"] if is_work else []
    if activity.kind is ActivityKind.WAITING:
        busy = _busy_cores_percent(context, main)
        if busy is None or busy >= context.limit("busy_cores_percent"):
            return
        judged_by = ["busy_cores_percent"]
    again = None
    if activity.name in _OF_JAX:
        judged_by = ["compiles_max"]
        again = compiled_again(main, context.limit("compiles_max"))
    least, most = activity.regain
    sentence = f"{capital(activity.what)} took {share:.0f} % of the time{_where(time)}."
    action = option_of_rule(main, "known_activity", activity.name) or activity.advice
    if activity.name == _IMPORTED and are_commands(main):
        sentence = sentence.replace(_IN_WORKERS, ", in the commands that the program starts")
        action = _WORKERS.format(most_at_once(main.children))
    query = column_filter(main, time.stacks) if activity.name in _DATABASES else None
    if query is not None:
        sentence += (
            f" The condition of the query calls `{query}`: the database computes this function for "
            "each row, and cannot use an index of the column."
        )
        action = _COMPARE_COLUMN
    if around is not None:
        sentence += around.in_words(main.process.wall_s)
        share = min(100.0, share + 100 * around.wall_s / main.process.wall_s)
    evidence = (
        Evidence("share of the run time spent on this activity", share, "%"),
        Evidence("time spent on this activity", time.wall_s, "s"),
        *([again[1]] if again else []),
    )
    regain = (least * share, most * share)
    # Without the steps of a training, reading or sleeping may be what the program is for: the
    # remark then promises no saving. So may be what a child process does that loads no data.
    is_training = bool(main.process.progress) and not (time.in_others and not time.in_loading)
    is_paced = activity.name == _STREAM
    may_be_purpose = activity.may_be_purpose and query is None and (is_paced or not is_training)
    if activity.name == _SLEEPING and may_be_purpose and _is_awaited(context, main):
        may_be_purpose = False
        sentence += " Meanwhile, child processes ended or waited for their next task."
        action = _AWAIT
        regain = (_REGAIN_AWAITED[0] * share, _REGAIN_AWAITED[1] * share)
    if is_work:
        is_little = share < context.limit("work_warning_percent")
        may_be_purpose = activity.purpose != "never" and (
            not is_training or (is_little and activity.purpose == "perhaps")
        )
    mutes = not (is_work or may_be_purpose) and share >= context.limit("explains_percent")
    if may_be_purpose:
        is_hint = is_paced or (not is_training and _is_purpose(context, main, time))
        yield context.finding(
            Severity.HINT if is_hint else Severity.REMARK,
            sentence if is_hint else f"{sentence} This may be the purpose of the program.",
            evidence=(*evidence, *in_lines(time.lines)),
            action=action,
            judged_by=judged_by,
            mutes=mutes,
            certainty=Certainty.POSSIBLE,
        )
        return
    finding = context.lost(
        sentence,
        share_percent=sum(regain) / 2 if activity.name == _SLEEPING else share,
        evidence=evidence,
        action=action,
        judged_by=judged_by,
        regain_percent=regain,
        lines=time.lines,
        mutes=mutes,
        certainty=_certainty(activity),
    )
    explains = time.in_loading and not is_work
    yield msgspec.structs.replace(finding, explains_loading=explains)


def _is_purpose(context: ProgramContext, main: MainProcess, time: ActivityTime) -> bool:
    """Return whether nothing speaks against this activity as the purpose of the program."""
    activity = time.activity
    if activity.kind is ActivityKind.WORK:
        return not activity.faster_way
    if activity.name == _SLEEPING:
        return True
    if activity.name in _DATABASES:
        return _part_of(time, of_few_statements(main, time)) >= context.limit("named_part")
    if activity.name == _SERVER:
        beside = main.percent(Doing.PYTHON, Doing.NATIVE, Doing.THREADS)
        return beside < context.limit("beside_waiting_percent")
    if activity.name == _ASYNCIO:
        together_s = sum(s for frames, s in time.stacks.items() if is_one_of_several(frames))
        if together_s >= context.limit("together_part") * time.wall_s:
            return True
        ran_percent = 100 * main.process.ran_s / main.process.wall_s
        return ran_percent < context.limit("beside_waiting_percent")
    return False


def _is_awaited(context: ProgramContext, main: MainProcess) -> bool:
    """Return whether a program that sleeps had child processes that were ready meanwhile.

    Several of them ended, or they waited for their next tasks.
    """
    ended = [one for one in main.children if one.wall_s < _MOST_OF_A_LIFE * main.process.wall_s]
    if len(ended) >= context.limit("ended_children_min"):
        return True
    whole_s = sum(one.seen_s for one in main.children)
    idle_s = sum(
        seen.wall_s for one in main.children for seen in one.stacks if is_for_next_task(seen)
    )
    return 100 * idle_s > context.limit("idle_children_percent") * whole_s > 0


def _certainty(activity: Activity) -> Certainty | None:
    """Return how sure the advice fits, if the loss itself is sure."""
    if activity.kind is ActivityKind.WORK:
        return Certainty.POSSIBLE
    return Certainty.LIKELY if activity.may_be_purpose else None


def _where(time: ActivityTime) -> str:
    """Return the lines that led to most of it, and whether it was in other processes."""
    others = _IN_WORKERS if time.in_others else ""
    return f"{others}, at {longest_places(time.lines, time.wall_s)}" if time.lines else others


def _busy_cores_percent(context: ProgramContext, main: MainProcess) -> float | None:
    """Return how much of the cores the program kept busy; None, and noted, if it is not known."""
    node = context.node_of(main)
    used = context.figure(node, "CPU cores used", node.cpu_cores_used) if node else None
    return None if node is None or used is None else 100 * used / max(1, node.cores)
