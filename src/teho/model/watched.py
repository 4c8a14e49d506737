"""What the probe saw of a Python process: its stacks, its loaders, its steps."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Union

import msgspec

__all__ = [
    "Frame",
    "GivenBatch",
    "Loader",
    "Progress",
    "Raised",
    "Seen",
    "State",
    "Wait",
    "WatchedProcess",
    "is_for_cpus",
    "is_library",
]

_LIBRARY = re.compile(
    r"^<(frozen |python>$|string>$|__array_)"
    r"|/(site|dist)-packages/|/lib/python3\.\d+/|/_teho_probe/"
)


class State(str, enum.Enum):
    """What a thread did at a moment, by the kernel and by its interpreter."""

    PYTHON = "python"
    """It executed Python, calls of less than some 50 µs included."""
    NATIVE = "native"
    """It was inside one longer call, and used a core or could have."""
    RUNNING = "running"
    """One of the two; which is found out by further looks."""
    MOVED = "moved"
    """As `RUNNING`, on another core than it was looked for on: it may have waited until then."""
    THREADS = "threads"
    """It waited while another thread of its process ran."""
    DEVICE = "device"
    """It waited for a driver's file."""
    PROCESS = "process"
    """It waited for another process of this machine: a pipe, a socket, a child, a shared lock."""
    LOCK = "lock"
    """It waited for another thread of its process, and none ran."""
    DISK = "disk"
    NETWORK = "network"
    SLEEPING = "sleeping"
    CORE = "core"
    """It could have run, and others had the cores."""
    WAITING = "waiting"
    """For what is not known."""


class Frame(msgspec.Struct, frozen=True, array_like=True):
    """One function on a stack, and where in it."""

    file: str
    function: str
    line: int
    text: str
    """The call that was going on there, or its whole line; empty if its file does not read."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One stack, and the time for which it was there."""

    frames: tuple[Frame, ...]
    """The innermost first; empty if there were too many different ones to tell."""
    state: State
    """What the thread did there."""
    looks: float
    """How often it was seen; a part of a look if its state is told by shares."""
    wall_s: float


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """Batches for which the program waited about equally long."""

    count: int
    total_s: float


class GivenBatch(msgspec.Struct, frozen=True, array_like=True):
    """One batch."""

    at_s: float
    """Monotonic time at which the program had it."""
    wait_s: float
    is_first: bool
    """Whether an epoch began with it."""


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """What gave a program its batches: all loaders made in one line of it with equal settings."""

    settings: dict[str, Any]
    """By the library's own names: `batch_size`, `num_workers`, `dataset`…"""
    made_at: Union[Frame, None]
    made: int
    """How many."""
    epochs: int
    """How often their first batch was asked for."""
    batches: int
    first_s: float
    """Waiting for the first batch of each epoch, all together; the start of workers included."""
    waits: dict[int, Wait]
    """Waiting for the others: n -> those of 2^(n - 1) to 2^n µs."""
    batch: dict[str, Any] = {}
    """What one holds: `bytes`, `dtypes`, `samples`."""
    given: tuple[GivenBatch, ...] = ()
    """Each batch, where that was asked for."""

    @property
    def wait_s(self) -> float:
        """All waiting for batches."""
        return self.first_s + sum(wait.total_s for wait in self.waits.values())


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the work had come when it was written."""

    steps: int
    first_s: float
    """Monotonic time at which the first step was done."""
    last_s: float
    """And the newest one."""
    times_s: tuple[float, ...] = ()
    """Of each step since the last time, where they were asked for."""
    between: dict[int, Wait] = {}
    """Time from one step to the next: n -> that of 2^(n - 1) to 2^n µs."""

    @property
    def steps_per_s(self) -> float | None:
        """Steady pace, from the first step on; None if no step came after it."""
        if self.steps < 2 or self.last_s <= self.first_s:
            return None
        return (self.steps - 1) / (self.last_s - self.first_s)


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """The exception that ended a process."""

    text: str
    """Its type, and the first line of its message unless that might hold a secret."""
    at: Union[Frame, None]
    """The last place of the program's own code on the way to it."""
    at_s: float
    """Monotonic time of the process's end."""


def is_library(path: str) -> bool:
    """Return whether a file is not the program's own."""
    return _LIBRARY.search(path) is not None


def is_for_cpus(tensorflow: Mapping[str, Any]) -> bool:
    """Return whether a TensorFlow is known to be built for CPUs alone.

    Args:
        tensorflow: what the probe noted of it; recordings before 2026-11-22 have its version alone.
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
    """Monotonic time at which it was first looked at."""
    until_s: float
    stacks: tuple[Seen, ...]
    set_up: tuple[Seen, ...] = ()
    """Those of them from before its first step."""
    parts: tuple[tuple[Seen, ...], ...] = ()
    """The same stacks for equal parts of its time, one after the other; empty if it was short."""
    independent_looks: float = 0.0
    """As many looks with equal weights would be as exact: looks are rarer later in a run."""
    from_outside: bool = True
    """Whether its stack was read from outside, at moments that the program has no part in. Looked
    at by a thread of its own, it is seen when it lets that thread run: stretches of less than 5 ms
    count for what follows them."""
    why_inside: str = ""
    """Why it was not read from outside."""
    cores: Union[tuple[int, ...], None] = None
    """On which its main thread might run."""
    threads: Union[int, None] = None
    """The most that were seen."""
    wait_for_core_s: Union[float, None] = None
    """For how long its main thread could have run, and had no core."""
    variables: dict[str, str] = {}
    """Those of the environment that say how many threads, and where."""
    libraries: dict[str, dict[str, Any]] = {}
    """What is known of each: `torch` -> `threads`, `devices`, `parameter_dtypes`…"""
    loaders: tuple[Loader, ...] = ()
    progress: tuple[Progress, ...] = ()
    phases: dict[str, float] = {}
    """Wall time of its main thread in each `teho.phase`, in s, without those within: `epoch`,
    `epoch/augment`."""

    raised: Union[Raised, None] = None
    """What it ended with; None also if that is not known."""

    @property
    def wall_s(self) -> float:
        """For how long it was there, as far as is known."""
        return self.until_s - self.began_s

    @property
    def may_use_device(self) -> bool:
        """Whether it may have computed on a GPU, by what is known of its libraries."""
        devices = [str(one) for own in self.libraries.values() for one in own.get("devices") or ()]
        if devices:
            return not all(one.lower().startswith("cpu") for one in devices)
        torch = self.libraries.get("torch", {})
        others = {"jax", "cupy"} & set(self.libraries)
        tensorflow = self.libraries.get("tensorflow")
        if tensorflow is not None and not is_for_cpus(tensorflow):
            others.add("tensorflow")
        built_for = any(torch.get(one) for one in ("cuda", "hip", "xpu"))
        return bool(others or built_for or not self.libraries)

    @property
    def is_one_of_several(self) -> bool:
        """Whether it trains together with others, by what is known of PyTorch."""
        return int(self.libraries.get("torch", {}).get("world_size") or 1) > 1

    @property
    def seen_s(self) -> float:
        """For how long it was looked at: not before the first look, nor after the last."""
        return sum(seen.wall_s for seen in self.stacks) or self.wall_s

    @property
    def ran_s(self) -> float:
        """For how long its main thread ran, or could have, or waited for a thread that did."""
        return sum(
            seen.wall_s
            for seen in self.stacks
            if seen.state in {State.PYTHON, State.NATIVE, State.THREADS}
        )
