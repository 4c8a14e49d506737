"""Observations of the probe in a Python process: stacks, loaders, steps."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Union

import msgspec

from teho.model.profiling import ProfilerUse

__all__ = [
    "Block",
    "ColumnFilter",
    "CostlyOption",
    "Frame",
    "GivenBatch",
    "InLoop",
    "InTurn",
    "Loader",
    "MissingIndex",
    "Need",
    "Progress",
    "Raised",
    "ReopenedConnection",
    "Repeated",
    "RepeatedPlan",
    "Seen",
    "State",
    "Unneeded",
    "Wait",
    "WatchedProcess",
    "Whole",
    "WholeUse",
    "is_for_cpus",
    "is_library",
]

_LIBRARY = re.compile(
    r"^<(frozen |python>$|thread>$|task>$|string>$|__array_)"
    r"|/(site|dist)-packages/|/lib/python3\.\d+/|/_teho_probe/"
    # Code that torch.compile has written into its cache, and Triton into its own.
    r"|/torchinductor_[^/]+/|/[a-z0-9]{2}/c[a-z0-9]{51}\.py$|/\.triton/cache/"
    # Code that TensorFlow has made of a `tf.function`, in a file that it deletes at its end.
    r"|/__autograph_generated_file"
)

_SHORT = 80
"""Maximum number of characters of a line of code in a sentence."""


class State(str, enum.Enum):
    """State of a thread at a moment, from the kernel and its interpreter."""

    PYTHON = "python"
    """It executed Python, including calls of less than about 50 µs."""
    NATIVE = "native"
    """It was inside one longer call, and used a core or was ready to run."""
    RUNNING = "running"
    """`PYTHON` or `NATIVE`; further samples find out which."""
    MOVED = "moved"
    """Like `RUNNING`, but on another core than expected: it may have waited before."""
    THREADS = "threads"
    """It waited while another thread of its process ran."""
    DEVICE = "device"
    """It waited for a driver's file."""
    PROCESS = "process"
    """It waited for another process of this machine: a pipe, a socket, a child, a shared lock."""
    LOCK = "lock"
    """It waited for another thread of its process, but no thread ran."""
    DISK = "disk"
    NETWORK = "network"
    SLEEPING = "sleeping"
    CORE = "core"
    """It was ready to run, but other threads used the cores."""
    WAITING = "waiting"
    """It waited for an unknown reason."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One function on a stack, and the line in it."""

    file: str
    function: str
    line: int
    text: str
    """The active call, or its whole line; empty if its file cannot be read."""

    @property
    def short_place(self) -> str:
        """The name of the file and the line, as sentences have it: `train.py:12`."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"

    @property
    def short_text(self) -> str:
        """The text as a sentence has it, or the name of the function if there is no text."""
        text = self.text or self.function
        return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One stack, and its time."""

    frames: tuple[Frame, ...]
    """Innermost frame first; empty if the stacks were too different. If the thread waited while
    another thread ran Python functions, the frames of that thread come first, then a frame with
    the file `<thread>`, and then the own frames."""
    state: State
    """State of the thread."""
    looks: float
    """Number of samples; a part of a sample if the states are known only as shares."""
    wall_s: float

    @property
    def own_frames(self) -> tuple[Frame, ...]:
        """The frames of the thread itself, innermost frame first."""
        for place, frame in enumerate(self.frames):
            if frame.file == "<thread>":
                return self.frames[place + 1 :]
        return self.frames


_PERIODS = 3
"""A call that happens only once is seen beside other lines of its loop in at most two periods."""


class InLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A call, or another expression, in a loop."""

    calls: tuple[Frame, ...]
    """The program's functions on the stack from the outermost one to the one with the call."""
    loop: Frame
    """The loop's first line, or that of a function that is called again and again."""
    last: int
    """Last line of the loop."""
    periods: int = 0
    """Number of periods of writing in which both the call and other lines of the loop were seen. A
    call that happens only once is in at most two of them."""

    @property
    def call(self) -> Frame:
        """The line of the call."""
        return self.calls[-1]

    @property
    def happens_again(self) -> bool:
        """Whether it was seen beside other lines of its loop in more periods than a single call."""
        return self.periods >= _PERIODS

    def has(self, seen: Seen) -> bool:
        """Return whether a stack is in this call."""
        rest = iter(reversed(seen.own_frames))
        return all(any(frame == call for frame in rest) for call in self.calls)

    def shows(self, seen: Seen) -> tuple[bool, bool]:
        """Return whether a stack is in this call, and whether it is beside this call in the loop.

        A period that shows both is one in which the loop began the call, or went on after it.
        """
        return self.has(seen), self.is_beside(seen)

    def is_beside(self, seen: Seen) -> bool:
        """Return whether a stack is in the loop, but not in this call."""
        return not self.has(seen) and any(
            frame.file == self.loop.file
            and frame.function == self.loop.function
            and self.loop.line <= frame.line <= self.last
            for frame in seen.own_frames
        )


class Repeated(InLoop, frozen=True, kw_only=True):
    """A call that gives the same result again in each iteration of a loop."""

    is_same: bool
    """Whether each iteration computes the same value. False: each one goes through the same values
    in an inner loop."""
    has_cache: bool = False
    """Whether the called function keeps its results, such as with `functools.lru_cache`."""
    is_changed: bool = False
    """Whether the program may change the result after the call."""


class RepeatedPlan(InLoop, frozen=True, kw_only=True):
    """A call that computes the plan of a lazy table, which each iteration of a loop begins again.

    The results of the iterations may differ, such as those of other filters.
    """

    library: str
    """`polars` or `dask`."""
    text: str
    """The name of the plan outside of the loop, or the expression in the loop that makes it."""
    made: Frame
    """The line with the call that makes the plan."""
    kept: Union[Frame, None] = None
    """The line that gives the name its plan. None: it is a parameter."""
    reads_text: bool
    """Whether it reads and parses a whole text file, such as CSV."""
    is_inside: bool = False
    """Whether the loop makes the plan."""


class Need(str, enum.Enum):
    """How much of a result the program uses."""

    NEVER = "never"
    LAST = "last"
    """Only the result of the last iteration of a loop."""
    SELDOM = "seldom"
    """Only the results of a few iterations."""
    PART = "part"
    """Only a part of the array."""


class Unneeded(InLoop, frozen=True, kw_only=True):
    """An expression whose result the program uses seldom, never, or only in part."""

    need: Need
    moved: tuple[int, ...] = ()
    """First lines of the statements that are needed only for this result."""
    at: tuple[Frame, ...] = ()
    """What uses the result: the rare conditions of `if` statements, the line after the loop, or
    the expression that cuts out a part."""
    after: tuple[Frame, ...] = ()
    """The first line after the loop that uses the last result, in addition to `at`."""
    share: Union[float, None] = None
    """Share of the results that are used at most, from 0 to 1; None: not known."""
    is_sure: bool = True
    """False: the share depends on settings that the run may have changed."""
    is_skipped: bool = False
    """Whether the loop goes on with the next iteration if the first condition is true."""
    can_move: bool = False
    """Whether the statements give the same results in the branch of the condition."""
    condition: Union[Frame, None] = None
    """The condition under which these statements are executed, if `at` is a rarer case of it."""


class ReopenedConnection(InLoop, frozen=True, kw_only=True):
    """A call that opens a connection to the same server in each iteration of a loop."""

    opened: Frame
    """The library's function that opens it. The call may also log in."""


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """How a loop sends requests: `await asyncio.gather(*(fetch(x) for x in items[i : i + 8]))`."""

    size: str
    """The number of requests of a block, as the source has it."""
    request: str
    """The call for one request: `fetch(x)`."""
    every: str
    """The loops of a comprehension over all requests: `for i in range(…) for x in …`."""
    options: str = ""
    """Further arguments of `asyncio.gather`: `, return_exceptions=True`."""


class InTurn(InLoop, frozen=True, kw_only=True):
    """A request for which each iteration of a loop waits, and which could begin earlier."""

    call_text: str
    """The awaited call, such as `fetch(session, url)`."""
    lock: Union[Frame, None] = None
    """The line that takes a lock for the request; `loop` is then this line too."""
    block: Union[Block, None] = None
    """How the loop sends the requests in blocks, of which each waits for its slowest request."""

    def shows(self, seen: Seen) -> tuple[bool, bool]:
        """Return whether a stack is in this call, and whether it is beside this call in the loop.

        For blocks: whether a stack waits for one request, and whether it waits for several ones. A
        single block waits first for several requests and then for one.
        """
        if self.block is None:
            return super().shows(seen)
        mark = next((one.function for one in seen.frames if one.file == "<task>"), "")
        inside = self.has(seen)
        return inside and mark.startswith("only"), inside and mark == "one of several"


class WholeUse(str, enum.Enum):
    """What a program does with a whole collection, although a part of it would be enough."""

    SEARCHED = "searched"
    """It compares the elements of a list one by one, such as in `x in items`."""
    SHIFTED = "shifted"
    """It moves all elements of a list, to remove the first one or to insert one before it."""
    SORTED = "sorted"
    """It sorts all elements, and uses only the first or the last few."""
    SAVED = "saved"
    """It writes all elements again, although only a few are new."""


class Whole(InLoop, frozen=True, kw_only=True):
    """An expression that goes through a whole collection, although a part would be enough."""

    use: WholeUse
    name: str
    """The collection, such as `self.route`."""
    how: str
    """`in`, or the function or method, such as `pop` or `json.dump`."""
    key: str = ""
    """What is searched, such as `cell`; of a sort, the expression that other code can replace."""
    made: tuple[Frame, ...] = ()
    """The lines that make the collection, or replace it by another one; of a sort, the cut."""
    grows: tuple[Frame, ...] = ()
    """The lines that add elements."""
    shrinks: tuple[Frame, ...] = ()
    """The lines that remove elements."""
    is_only_searched: bool = False
    """Whether the program uses the collection for nothing else."""
    instead: tuple[str, ...] = ()
    """Lines of Python that give the same result."""
    target: str = ""
    """The name that the last of these lines gives the result; empty: it is an expression, or the
    result has no name yet."""
    count: Union[int, None] = None
    """Number of elements that are used; None: not known."""
    size: Union[int, None] = None
    """Number of all elements; None: the source does not say it."""


class ColumnFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A query of a database whose condition calls a function on a column."""

    frame: Frame
    """The line that makes the query."""
    text: str
    """The call in the condition, such as `substr(taken_at, 1, 10)`."""


class CostlyOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option in the program's source that makes a part of its work expensive."""

    name: str
    """Its name in `costly_options.toml`."""
    at: Frame
    """Its place. The text is the option, such as `probability=True`."""
    lines: tuple[Frame, ...] = ()
    """The lines whose time it explains; empty: all lines that do the work."""
    words: dict[str, str] = {}
    """Parts of the program's source that the advice names, such as the column of an `ORDER BY`."""


class MissingIndex(msgspec.Struct, frozen=True, kw_only=True):
    """A query that is repeated, and that reads a whole table each time."""

    frame: Frame
    """The line that makes the query."""
    loop: Frame
    """The loop's first line; or the line of the query, if one call runs it for many rows."""
    is_inner: bool = False
    """Whether it is inside another query, which runs it for each of its rows."""
    table: str
    columns: tuple[str, ...]
    """The columns of the index that the query needs."""
    made: Frame
    """The line that creates the table."""


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """Batches with about the same waiting time."""

    count: int
    total_s: float


class GivenBatch(msgspec.Struct, frozen=True, array_like=True):
    """One batch."""

    at_s: float
    """Monotonic time at which the program received it."""
    wait_s: float
    is_first: bool
    """Whether it was the first batch of an epoch."""


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """A data loader: all loaders that one line of the program made with equal settings."""

    settings: dict[str, Any]
    """Settings by their names in the library: `batch_size`, `num_workers`, `dataset`…"""
    made_at: Union[Frame, None]
    made: int
    """Number of loaders."""
    epochs: int
    """Number of epochs: requests for a first batch."""
    batches: int
    first_s: float
    """Total waiting time for the first batches of all epochs, including the start of workers."""
    waits: dict[int, Wait]
    """Waiting time of the other batches: n -> batches with 2^(n - 1) to 2^n µs."""
    batch: dict[str, Any] = {}
    """Content of a batch: `bytes`, `dtypes`, `samples`."""
    given: tuple[GivenBatch, ...] = ()
    """Each batch, if this was requested."""

    @property
    def library(self) -> str:
        """Library that made it: `torch`, `tf.data` or `grain`."""
        dataset = self.settings.get("dataset")
        return dataset if dataset in ("tf.data", "grain") else "torch"

    @property
    def wait_s(self) -> float:
        """Total waiting time for batches."""
        return self.first_s + sum(wait.total_s for wait in self.waits.values())


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the work at the time of writing."""

    steps: int
    first_s: float
    """Monotonic time at the end of the first step."""
    last_s: float
    """Monotonic time at the end of the last step."""
    times_s: tuple[float, ...] = ()
    """Time of each step since the previous entry, if this was requested."""
    between: dict[int, Wait] = {}
    """Time from one step to the next: n -> steps with 2^(n - 1) to 2^n µs."""

    @property
    def steps_per_s(self) -> float | None:
        """Step rate after the first step. None: the first step was the last."""
        if self.steps < 2 or self.last_s <= self.first_s:
            return None
        return (self.steps - 1) / (self.last_s - self.first_s)


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """The exception that ended a process."""

    text: str
    """Its type, and the first line of its message unless that might hold a secret."""
    at: Union[Frame, None]
    """The last line of the program's own code before it."""
    at_s: float
    """Monotonic time of the process's end."""


@lru_cache(maxsize=65536)
def is_library(path: str) -> bool:
    """Return whether a file belongs to a library, not to the program."""
    return _LIBRARY.search(path) is not None


def is_for_cpus(tensorflow: Mapping[str, Any]) -> bool:
    """Return whether a TensorFlow is certainly built only for CPUs.

    Args:
        tensorflow: the probe's notes; recordings before 2026-11-22 have only the version.
    """
    return tensorflow.get("cuda") is False and tensorflow.get("rocm") is False


class WatchedProcess(msgspec.Struct, frozen=True, kw_only=True):
    """One Python process of the program."""

    node: str
    pid: int
    parent_pid: int = 0
    python: str
    """Its version."""
    began_s: float
    """Monotonic time of its first sample."""
    until_s: float
    stacks: tuple[Seen, ...]
    set_up: tuple[Seen, ...] = ()
    """Stacks from before its first step."""
    parts: tuple[tuple[Seen, ...], ...] = ()
    """The same stacks for consecutive equal parts of its time; empty if it was short."""
    at_end: tuple[Seen, ...] = ()
    """Stacks of its last minute; empty if it ran for less time."""
    independent_looks: float = 0.0
    """Number of samples with equal weights that would be as exact: later samples are rarer."""
    from_outside: bool = True
    """Whether its stack was read from outside, at times that do not depend on the program. A
    thread inside the process can read it only when the program lets this thread run: periods
    of less than 5 ms then count for the following activity."""
    why_inside: str = ""
    """Why it was not read from outside."""
    cores: Union[tuple[int, ...], None] = None
    """Cores on which its main thread may run."""
    threads: Union[int, None] = None
    """Largest number of threads seen."""
    wait_for_core_s: Union[float, None] = None
    """Time in which its main thread waited for a core."""
    stdin_is_terminal: Union[bool, None] = None
    """Whether its standard input is a terminal, so that a person can answer. None: unknown."""
    variables: dict[str, str] = {}
    """Environment variables for the number and place of threads."""
    libraries: dict[str, dict[str, Any]] = {}
    """Facts about each library: `torch` -> `threads`, `devices`, `parameter_dtypes`… `python` has
    only `tracemalloc`, the number of stored calls, if Python stores where objects are made."""
    loaders: tuple[Loader, ...] = ()
    progress: tuple[Progress, ...] = ()
    profiled: tuple[ProfilerUse, ...] = ()
    """Uses of the framework's profiler by `teho profile`."""
    phases: dict[str, float] = {}
    """Wall time of its main thread in each `teho.phase`, in s, without inner phases: `epoch`,
    `epoch/augment`."""

    raised: Union[Raised, None] = None
    """Exception that ended it; None also if unknown."""
    repeated: tuple[Repeated, ...] = ()
    """Calls on its stacks that give the same results in each iteration of a loop."""
    unneeded: tuple[Unneeded, ...] = ()
    """Expressions on its stacks whose results the program uses seldom, never, or only in part."""
    reopened: tuple[ReopenedConnection, ...] = ()
    """Calls on its stacks that open a connection to the same server in each iteration of a loop."""
    in_turn: tuple[InTurn, ...] = ()
    """Requests on its stacks that a loop waits for one after the other."""
    wholes: tuple[Whole, ...] = ()
    """Whole collections that it uses although a part of them would be enough."""
    column_filters: tuple[ColumnFilter, ...] = ()
    """Queries of a database that cannot use an index."""
    costly_options: tuple[CostlyOption, ...] = ()
    """Options in the program's source that make a part of its work expensive."""
    repeated_plans: tuple[RepeatedPlan, ...] = ()
    """Calls on its stacks that compute a lazy table again in each iteration of a loop."""
    missing_indexes: tuple[MissingIndex, ...] = ()
    """Queries of a database for which a table has no index."""

    @property
    def wall_s(self) -> float:
        """Its wall time, as far as known."""
        return self.until_s - self.began_s

    @property
    def may_use_device(self) -> bool:
        """Whether it may have computed on a GPU, from the facts about its libraries."""
        devices = [str(one) for own in self.libraries.values() for one in own.get("devices") or ()]
        if devices:
            return not all(one.lower().startswith("cpu") for one in devices)
        torch = self.libraries.get("torch", {})
        others = {"jax", "cupy"} & set(self.libraries)
        tensorflow = self.libraries.get("tensorflow")
        if tensorflow is not None and not is_for_cpus(tensorflow):
            others.add("tensorflow")
        built_for = any(torch.get(one) for one in ("cuda", "hip", "xpu"))
        return bool(others or built_for or not self.libraries.keys() - {"python"})

    @property
    def is_one_of_several(self) -> bool:
        """Whether it trains together with other processes, from the facts about PyTorch."""
        return int(self.libraries.get("torch", {}).get("world_size") or 1) > 1

    @property
    def seen_s(self) -> float:
        """Time from its first to its last sample."""
        return sum(seen.wall_s for seen in self.stacks) or self.wall_s

    @property
    def not_sampled_s(self) -> float:
        """Time before its first sample and after its last one."""
        return max(0.0, self.wall_s - self.seen_s)

    @property
    def ran_s(self) -> float:
        """Time in which its main thread ran, was ready to run, or waited for a running thread."""
        return sum(
            seen.wall_s
            for seen in self.stacks
            if seen.state in {State.PYTHON, State.NATIVE, State.THREADS}
        )
