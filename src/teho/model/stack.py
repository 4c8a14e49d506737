"""Stacks of the program: functions, lines, and the state of the thread."""

from __future__ import annotations

import enum
from functools import lru_cache

import msgspec

from teho.patterns import lazy_pattern

__all__ = [
    "Frame",
    "Seen",
    "State",
    "is_library",
]

_LIBRARY = lazy_pattern(
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
    samples: float
    """Number of samples; a part of a sample if the states are known only as shares."""
    wall_s: float

    @property
    def own_frames(self) -> tuple[Frame, ...]:
        """The frames of the thread itself, innermost frame first."""
        for place, frame in enumerate(self.frames):
            if frame.file == "<thread>":
                return self.frames[place + 1 :]
        return self.frames


@lru_cache(maxsize=65536)
def is_library(path: str) -> bool:
    """Return whether a file belongs to a library, not to the program."""
    return _LIBRARY.search(path) is not None
