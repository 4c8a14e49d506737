"""What the program's source shows about its slow calls, found by the search at the end of a run."""

from __future__ import annotations

import enum
from typing import Union

import msgspec

from teho.model.stack import Frame, Seen

__all__ = [
    "Block",
    "ColumnFilter",
    "CostlyOption",
    "InLoop",
    "InTurn",
    "MissingIndex",
    "Need",
    "ReopenedConnection",
    "Repeated",
    "RepeatedPlan",
    "Unneeded",
    "Whole",
    "WholeUse",
]

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

        A period that shows both is one in which the loop began the call, or continued after it.
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
    """Whether the loop continues with the next iteration if the first condition is true."""
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
    moved: Union[tuple[int, int], None] = None
    """First and last line of the request in the block of the lock, if the task has opened the
    connection before; None: only the awaited call is known."""
    gathered: str = ""
    """A line that replaces the whole loop and awaits all requests together; empty: the loop does
    more than to collect the answers."""
    is_many: bool = False
    """Whether the source says that the loop has several items."""

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
    """It moves or sorts all elements of a list, to remove the first one or to insert one before
    it."""
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
    as_often: tuple[int, ...] = ()
    """Lines of other statements that the loop executes as often; empty: of fewer than two."""


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
