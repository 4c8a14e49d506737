"""What `teho profile` asks of the probe, and what the probe answers."""

from __future__ import annotations

from typing import Union

import msgspec

__all__ = ["ACCEPTED", "ProfilerPlan", "ProfilerUse"]

ACCEPTED = "accepted"
"""`ProfilerUse.why` of a process that has the plan, and waits for its first step."""


class ProfilerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which steps the framework's own profiler records; the probe reads it as JSON."""

    id: str
    first: Union[int, None] = None
    """Number of the first step; the first step of a program has the number 1."""
    last: Union[int, None] = None
    """Number of the last step, which is recorded too."""
    count: Union[int, None] = None
    """Number of steps to record, from the moment at which a process gets the plan."""
    window_s: Union[float, None] = None
    """Time to record, if no steps are wanted."""
    after_s: float = 0.0
    """Time from the import of the framework to the window."""
    extras: tuple[str, ...] = msgspec.field(default=(), name="with")
    """What else to record: `stack`, `shapes`, `memory`; `range`: only mark the steps, for a tool
    that runs the program."""
    ranks: Union[str, tuple[int, ...]] = "one"
    """`one` (rank 0), `all`, or the ranks."""
    most_s: float
    """Longest time to record."""
    most_bytes: int
    """Largest size of the trace, before it is compressed."""


class ProfilerUse(msgspec.Struct, frozen=True, kw_only=True):
    """How the framework's profiler was used in one process: one line of the probe."""

    profile: str
    """Id of the plan."""
    rank: Union[int, None] = None
    framework: str = ""
    """Module of the framework, such as `torch`."""
    steps: Union[tuple[int, int], None] = None
    """First and last step that were recorded from beginning to end; null: none."""
    in_step: Union[int, None] = None
    """The step in which the recording ended."""
    why: str = ""
    """Why less was recorded than the plan asks for; empty: everything was recorded.

    `accepted`: the process waits for the first step; `passed`: the first step was over; `ended`:
    the program ended; `time`, `memory`: a limit was reached; `size`, `disk`, `written`: the trace
    could not be written; `own`, `displaced`: the program has its own profiler; `tool`: another
    tool uses the GPU's interface for profilers; `framework`: no known framework; `device`: no GPU
    is used; `error`.
    """
    detail: str = ""
    """The step, the tool, the number of bytes, or the error."""
    file: str = ""
    """Name of the trace's file in the spool; empty: no trace."""
    bytes: int = 0
    """Its size before it is compressed."""
    began_s: float = 0.0
    """Monotonic time of the node at which the profiler began to record."""
    ended_s: float = 0.0
    stop_s: float = 0.0
    """Time to stop the profiler."""
    save_s: float = 0.0
    """Time to write the trace; the program waited for it."""
