"""Observations of the probe in a Python process: stacks, loaders, steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import msgspec

from teho.model.in_source import (
    ColumnFilter,
    CostlyOption,
    InTurn,
    MissingIndex,
    ReopenedConnection,
    Repeated,
    RepeatedPlan,
    Unneeded,
    Whole,
)
from teho.model.profiling import ProfilerUse
from teho.model.stack import Frame, Seen, State

__all__ = [
    "Death",
    "GivenBatch",
    "Loader",
    "Progress",
    "Raised",
    "Stayed",
    "Total",
    "Wait",
    "WatchedProcess",
    "is_for_cpus",
]


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


class Total(msgspec.Struct, frozen=True, array_like=True):
    """The share of the work that is done, as a library of the program knows it."""

    known_by: str
    """The library."""
    done: int
    """In the unit of the library, which may be an epoch."""
    total: int


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
    total: Union[Total, None] = None
    """None: no library of the program knows it, or all of the work is done."""

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


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process that the stack sampler noticed."""

    pid: int
    at_s: float
    """Monotonic time at which it was noticed."""
    status: Union[int, None] = None
    """How it ended: a status as of `wait`. None: this is not known."""


class Stayed(msgspec.Struct, frozen=True, kw_only=True):
    """What a process waited for while it stayed in one line for a long time."""

    since_s: float
    """Monotonic time of the last sample in another line."""
    at_s: float
    """Monotonic time at which this was read."""
    dead: tuple[Death, ...] = ()
    """Its children that have ended, and that it has not waited for."""
    others: tuple[tuple[Frame, ...], ...] = ()
    """Stacks of its other threads that waited for a lock, innermost frame first."""
    blocked_on: Union[str, None] = None
    """The file of a file system that did not answer: the wait could not be interrupted. Empty: the
    path is not known. None: it did not wait for a file system, or a signal could interrupt it."""


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
    """Stacks of its last 45 s; empty if it ran for less time. If the samples were
    added up for a longer time, they are the means of this longer time."""
    at_end_s: float = 0.0
    """The length of the time from which `at_end` is."""
    at_end_until_s: float = 0.0
    """Monotonic time of the end of `at_end`."""
    stayed: Union[Stayed, None] = None
    """What it waits for in the line in which it stays. None: it does not stay in one line."""
    noted_s: float = 0.0
    """Monotonic time at which its probe wrote the last time. Later steps are not known."""
    death: Union[Death, None] = None
    """Its end, if the stack sampler noticed it."""
    independent_samples: float = 0.0
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
