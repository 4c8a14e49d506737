"""A run makes no progress any more: its processes wait for something that does not come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from teho.explain.halt_words import dead_sentence, deaths_of, other_lock
from teho.explain.idle import is_idle, moves_data
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.where import doing_in, place_of
from teho.explain.wording import MOST_NAMED, capital, joined, the_ranks
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, State, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern
from teho.units import format_duration

RANK = 5
SEVERITY = "critical"
THRESHOLDS = {
    "steps_min": chosen(
        10.0,
        "steps",
        "after fewer steps than this limit, Teho does not know how long a step usually takes",
    ),
    "silent_min_s": chosen(
        45.0, "s", "programs often pause for less than 45 s, for example to write a file"
    ),
    "usual_times": chosen(
        10.0, "times", "a pause that is as long as ten usual steps is more than one slow step"
    ),
    "longest_times": chosen(
        3.0,
        "times",
        "the longest step of the run so far may have been an evaluation or a checkpoint, and the "
        "next evaluation or checkpoint may take longer",
    ),
    "no_steps_min_s": chosen(
        300.0,
        "s",
        "most intended pauses are shorter than 5 min; Teho uses this limit if it does not know "
        "the program's steps",
    ),
    "waiting_percent": chosen(
        95.0,
        "%",
        "the main thread of a stuck process waits almost all the time; if the thread waits for "
        "less than 95 % of the time, the process still works",
    ),
    "one_place_percent": chosen(
        90.0, "%", "a process that is stuck waits in one line of the program"
    ),
    "cores_max": chosen(
        0.2, "cores", "threads that only wait, and check from time to time, use less than 0.2 cores"
    ),
    "gpu_busy_max_percent": chosen(
        1.0, "%", "if a GPU is busier than this limit, the program makes progress"
    ),
    "bytes_max_per_s": chosen(
        1e5,
        "bytes/s",
        "a program that reads or writes more bytes per second than this limit makes progress",
    ),
}
MUTES = (
    "waits_long", "ranks_wait_for_each_other", "workers_uneven", "cores_unused",
    "gpu_used_only_at_first",
)  # fmt: skip
MUTES_BECAUSE = "the processes wait because the run is stuck"
_WAITS = frozenset(
    (State.THREADS, State.DEVICE, State.PROCESS, State.LOCK, State.DISK, State.NETWORK,
     State.SLEEPING, State.WAITING)
)  # fmt: skip
_SPINS = frozenset((Doing.COMMUNICATING, Doing.DEVICE))
"""Activities in which a thread may wait in a loop, so that its core looks busy."""
_ASKS = ("input(", "breakpoint(", "pdb.", "getpass(", "sys.stdin")
"""Calls that wait for a person, or for the next line of a pipe."""
_SLEEPS = "sleep("
_SERVES = lazy_pattern(
    r"/(socketserver|http/server|asyncio/base_events|asyncio/runners|wsgiref/simple_server)\.py:"
    r"|/(uvicorn|gunicorn|flask|werkzeug|tornado|aiohttp|grpc|zmq)/"
)
"""Functions that wait for requests, as a server does for hours."""


_STEPS_BEFORE = 10
"""A program may make this number of steps after a worker has ended: batches were ready."""


class _Halt(NamedTuple):
    """A process that waits in one place."""

    main: MainProcess
    since_s: float
    """How long it has made no progress."""
    usual_s: float | None
    """Usual time of a step; None: it has no known steps."""
    doing: Doing
    frame: Frame | None
    """Line of the program; None if the program itself is not on the stack."""
    call: str
    """Function in which it waits."""

    @property
    def stopped_s(self) -> float | None:
        """Monotonic time about ten steps before its last step; None: it has no known steps."""
        if self.usual_s is None:
            return None
        return self.main.process.until_s - self.since_s - _STEPS_BEFORE * self.usual_s

    @property
    def blocked_on(self) -> str | None:
        """The file of a file system that does not answer; see `Stayed.blocked_on`."""
        stayed = self.main.process.stayed
        return stayed.blocked_on if stayed else None


def judge(context: ProgramContext) -> Findings:
    """Find out whether every process of a run has waited in one place for too long.

    The time since the last step is compared with the usual step and the longest step. Without known
    steps, the whole last 45 s must be one wait, and the cores and GPUs must be idle for 5 min. A
    process that waits for a person or for requests or sleeps on purpose is not stuck, and neither
    is a process that computes, reads or writes. If the input is not a terminal, no person can
    answer a question between two steps.
    """
    end = context.run.end
    if not context.mains or (end is not None and (end.exit_code == 0 or end.on_purpose)):
        return
    gone = _ended_before(context)
    halts = [_halt(main, context) for main in context.mains if main not in gone]
    known = [halt for halt in halts if halt is not None]
    if not known or len(known) < len(halts):
        return
    least_s = min(halt.since_s for halt in known)
    if moves_data(context, least_s / 2, context.limit("bytes_max_per_s")):
        return
    # Ranks wait for a rank that does something else: that rank is the cause.
    causes = [halt for halt in known if halt.doing is not Doing.COMMUNICATING] or known
    others = len(known) - len(causes)
    first = max(causes, key=lambda halt: halt.since_s)
    spins = any(halt.doing in _SPINS for halt in known)
    # The last step may have ended at any moment of its time bin. Without steps, all bins count.
    idle_s = first.since_s if first.usual_s is None else first.since_s / 2
    if not spins and not is_idle(
        context, idle_s,
        cores_max=context.limit("cores_max"),
        gpu_busy_max_percent=context.limit("gpu_busy_max_percent"),
    ):  # fmt: skip
        return
    waiting = f"{_who(causes, known)} {_verb(causes)} {_places(causes)}"
    deaths = deaths_of(first.main, first.stopped_s)
    behind = ""
    if others:
        other = next(halt for halt in known if halt.doing is Doing.COMMUNICATING)
        whom = _who(causes, known)
        behind = (
            f"; {'the other ranks wait' if others > 1 else 'the other rank waits'} for {whom} in "
            f"{_place(other)}"
        )
    if gone and len(causes) == len(known):
        waiting = f"{_named(gone)} {'has' if len(gone) == 1 else 'have'} ended, but {waiting}"
    bin_s, stopped_s = context.summary.bin_s, context.summary.elapsed_s - first.since_s
    what = "no step" if first.usual_s is not None else "no progress"
    yield context.finding(
        Severity.CRITICAL,
        f"The run is stuck: {what} for {format_duration(first.since_s)}. {capital(waiting)}"
        f"{behind}.{dead_sentence(deaths)}",
        evidence=(
            Evidence("time since the last step" if first.usual_s else "time without progress",
                     first.since_s, "s"),
            *([Evidence("usual time of a step", first.usual_s, "s")] if first.usual_s else []),
        ),
        action=_action(first, context, has_dead=bool(deaths)),
        moments=context.moments_in(
            "job_cpu_s",
            [(node, [(bin_ + 1) * bin_s > stopped_s for bin_ in range(context.summary.bin_count)])
             for node in context.summary.nodes],
        ),
    )  # fmt: skip


def _ended_before(context: ProgramContext) -> list[MainProcess]:
    """Return the main processes that ended long before the others, such as a rank that failed."""

    def end_s(main: MainProcess) -> float:
        # Processes of different nodes have different monotonic clocks.
        node = context.run.node(main.process.node)
        return main.process.until_s - ((node.started_s if node else None) or 0.0)

    last_s = max(map(end_s, context.mains))
    return [one for one in context.mains if last_s - end_s(one) >= context.limit("silent_min_s")]


def _halt(main: MainProcess, context: ProgramContext) -> _Halt | None:
    """Return where a process waits; None if it makes progress, or if this is not known."""
    process = main.process
    whole_s = sum(seen.wall_s for seen in process.at_end)
    if not whole_s:
        return None
    waits = [seen for seen in process.at_end if _waits(process, seen)]
    if 100 * sum(seen.wall_s for seen in waits) < context.limit("waiting_percent") * whole_s:
        return None
    place, wall_s = _most(waits)
    if 100 * wall_s < context.limit("one_place_percent") * whole_s:
        return None
    frame = next((one for one in place.frames if not is_library(one.file)), None)
    since_s, usual_s = _silence(process, context)
    if since_s is None or (frame is not None and _SLEEPS in frame.text):
        return None
    asks = frame is not None and any(word in frame.text for word in _ASKS)
    serves = any(_SERVES.search(place_of(one)) for one in place.frames)
    if usual_s is None and (asks or serves):
        return None
    if asks and process.stdin_is_terminal is not False:
        return None
    call = place.frames[0].function if place.frames else ""
    return _Halt(main, since_s, usual_s, doing_in(process, place), frame, call)


def _waits(process: WatchedProcess, seen: Seen) -> bool:
    return seen.state in _WAITS or doing_in(process, seen) in _SPINS


def _most(waits: Sequence[Seen]) -> tuple[Seen, float]:
    """Return the wait of the line with the most time, and the time of all waits in this line."""
    sums: dict[tuple[str, int], float] = {}
    longest: dict[tuple[str, int], Seen] = {}
    for seen in waits:
        frame = next((one for one in seen.frames if not is_library(one.file)), None)
        key = (frame.file, frame.line) if frame else ("", 0)
        sums[key] = sums.get(key, 0.0) + seen.wall_s
        longest.setdefault(key, seen)
    key = max(sums, key=lambda one: sums[one])
    return longest[key], sums[key]


def _silence(process: WatchedProcess, context: ProgramContext) -> tuple[float | None, float | None]:
    """Return the time without a step, if it is too long, and the usual time of a step."""
    progress = process.progress[-1] if process.progress else None
    if progress is None or progress.steps < 2:
        least_s = context.limit("no_steps_min_s")
        return (least_s if process.wall_s >= least_s else None), None
    last_s, stayed = progress.last_s, process.stayed
    if stayed is not None and process.noted_s < stayed.since_s:
        # In a long run, the probe writes seldom: it may not have written the last steps yet.
        last_s = max(last_s, stayed.since_s)
    since_s = process.until_s - last_s
    pace = progress.steps_per_s
    if progress.steps < context.limit("steps_min") or not pace:
        return None, None
    longest_s = 2 ** max(progress.between, default=0) / 1e6
    least_s = max(
        context.limit("silent_min_s"),
        context.limit("usual_times") / pace,
        context.limit("longest_times") * longest_s,
    )
    return (since_s if since_s >= least_s else None), 1 / pace


def _who(causes: Sequence[_Halt], known: Sequence[_Halt]) -> str:
    if len(known) == 1 and not isinstance(known[0].main.library.get("rank"), int):
        return "the program"
    return _named([halt.main for halt in causes])


def _named(mains: Sequence[MainProcess]) -> str:
    ranks = [main.library.get("rank") for main in mains]
    numbers = [rank for rank in ranks if isinstance(rank, int)]
    if len(numbers) == len(mains):
        return the_ranks(numbers)
    return "a process" if len(mains) == 1 else f"{len(mains)} processes"


def _verb(causes: Iterable[_Halt]) -> str:
    return "waits" if len(list(causes)) == 1 else "wait"


def _place(halt: _Halt) -> str:
    if halt.frame is None:
        return f"`{halt.call}`" if halt.call else "code outside Python"
    name = halt.frame.file.rpartition("/")[2]
    text = halt.frame.short_text
    return f"`{text}` ({name}:{halt.frame.line})"


def _places(causes: Sequence[_Halt]) -> str:
    """Return for what and in which lines these processes wait, each line once."""
    places = joined(list(dict.fromkeys(map(_place, causes)))[:MOST_NAMED])
    blocked = [halt.blocked_on for halt in causes if halt.blocked_on is not None]
    if blocked:
        files = list(dict.fromkeys(filter(None, blocked)))[:MOST_NAMED]
        named = f" ({joined(files)})" if files else ""
        return f"for a file system that does not answer{named}, in {places}"
    other = other_lock(causes[0].main.process) if len(causes) == 1 else None
    if other is not None and causes[0].doing is Doing.LOCK:
        second = f"`{other.short_text}` ({other.short_place})"
        return f"in {places}, and another thread of it waits for a lock in {second}"
    return f"in {places}"


_ACTIONS = {
    Doing.COMMUNICATING: (
        "Check that all ranks call the same collective operations, such as `all_reduce`, in the "
        "same order. Also check the end of an epoch, when one rank can have fewer batches than "
        "the other ranks. If a rank has ended, its error is in the log."
    ),
    Doing.LOADING: (
        "Look in the log for an error of a loader worker. If a thread holds a lock while a worker "
        "is forked, the worker waits for this lock forever. To avoid this, use "
        '`DataLoader(..., multiprocessing_context="spawn")`, or import and use libraries with '
        "threads only in the workers."
    ),
    Doing.LOCK: (
        "One possible cause: two threads take two locks in different orders, and wait for each "
        "other forever. Always take locks in the same order. Another possible cause: a process "
        "was forked while one of its threads held a lock. Then the new process waits for this "
        "lock forever. To avoid this, start processes with `spawn`."
    ),
    Doing.PROCESS: (
        "This line waits for another process. Check whether that process still runs, and look for "
        "its error in the log."
    ),
    Doing.DISK: (
        "The file system does not answer. From another node, try `ls` on the folder that the "
        "program reads or writes, and report the problem to the site's support."
    ),
    Doing.NETWORK: "Set a time limit for the request (`timeout=`), and retry after a timeout.",
}


_DEAD = (
    "Look for the error of the ended process in the log. SIGKILL often means that the memory was "
    "full."
)


def _action(halt: _Halt, context: ProgramContext, *, has_dead: bool) -> str:
    job_id = context.run.allocation(halt.main.process.node).job_id
    stop = (
        f"End the job with `teho cancel {job_id}`: each further hour is billed."
        if job_id
        else "End the program: it does not continue by itself."
    )
    doing = Doing.DISK if halt.blocked_on is not None else halt.doing
    how = _DEAD if has_dead else _ACTIONS.get(doing, "Find out what this line waits for.")
    return f"{stop} {how}"
