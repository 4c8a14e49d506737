"""Memory layout of the tasks and coroutines of asyncio, for each version of Python."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TASK_LAYOUTS", "TaskLayout"]


class TaskLayout(NamedTuple):
    """Offsets in bytes in a version of Python; tests/unwind compares them with each Python."""

    coroutine_frame: int
    """Coroutine -> its frame, or before Python 3.11 the address of its frame."""
    frame_globals: int
    frame_locals: int
    """Frame -> its first local variable."""
    frame_stack: int
    """Frame -> how many variables and values it has, before 3.11 the end of its values."""
    task_coroutine: int
    """Task -> its coroutine. The future for which it waits is before it."""
    task_state: int


TASK_LAYOUTS = {
    (3, 8): TaskLayout(16, 48, 360, 72, 112, 72),
    (3, 9): TaskLayout(16, 48, 360, 72, 152, 80),
    (3, 10): TaskLayout(16, 48, 352, 80, 160, 88),
    (3, 11): TaskLayout(80, 8, 72, 64, 136, 88),
    (3, 12): TaskLayout(72, 24, 72, 64, 136, 88),
    (3, 13): TaskLayout(72, 24, 72, 64, 120, 96),
}
