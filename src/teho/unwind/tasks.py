"""The task of asyncio for which the event loop of a process waits, from its memory.

While all tasks wait, the stack of the thread has only the event loop. The coroutines of a task are
in its objects: the task has the outermost coroutine, and each coroutine has the one that it awaits.

The loop waits for all its tasks at once. What counts is what the program waits for:

1. The task that `asyncio.run` was called with, if it waits for something outside of the program,
   and not only for a time.
2. Otherwise one of the tasks that wait for something outside. It is drawn at random: over many
   samples, each of these tasks gets the same share of the time. Tasks that wait for a lock, a queue
   or other tasks, such as in `asyncio.gather`, are left out.
3. Without such a task, one of the tasks that wait for others.
"""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from teho.model.stack import is_library
from teho.unwind.code import FIRST_TASK, ONE_OF_TASKS, ONLY_TASK, Code
from teho.unwind.memory import UnwindError
from teho.unwind.objects import Objects
from teho.unwind.task_layout import TASK_LAYOUTS, TaskLayout

if TYPE_CHECKING:
    from teho.unwind.stack import Key, Place, Unwinder

__all__ = ["Awaited", "Tasks", "is_in_loop"]

_POINTER = struct.Struct("<Q")
_INT = struct.Struct("<i")


_LOOP = 16
"""Task -> its event loop. In other objects that are awaited, the object for which they wait."""
_VALUES_3_10 = 64
"""Frame -> the address of its values, in Python 3.10."""
_FRAME_BYTES = 768
_PENDING = 0
_DEEPEST = 64
_MOST_TASKS = 256
"""Tasks that are read for one sample."""
_ENOUGH_TASKS = 8
"""Tasks that wait for something outside: with this number, it is not waited for only one thing."""
_MOST_KNOWN = 10_000
_CHECK_EVERY = 50
_ROOT_FRAMES = 8
"""Frames between the innermost one and the call of the event loop."""
_COROUTINES = frozenset(("coroutine", "generator", "async_generator"))
_WRAPPERS = frozenset(("coroutine_wrapper", "async_generator_asend", "async_generator_athrow"))
_FUTURE = "_asyncio.FutureIter"
_GATHERING = "_GatheringFuture"
_INSIDE = ("/asyncio/locks.py", "/asyncio/queues.py", "/asyncio/taskgroups.py")
"""Files whose functions wait for other tasks."""
_TASKS = "/asyncio/tasks.py"
_OUTSIDE = frozenset(("sleep", "wait_for", "_wrap_awaitable", "__wakeup"))
"""Functions in this file that do not wait for other tasks."""


class Awaited(NamedTuple):
    """A stack with the coroutines for which an event loop waits."""

    key: Key
    sleeps: bool
    """Whether they wait for a time."""


class _Chain(NamedTuple):
    """The coroutines of a task."""

    places: tuple[Place, ...]
    """Innermost first."""
    innermost: int
    """Address of the innermost coroutine."""
    is_inside: bool
    """Whether it waits for other tasks of the program."""
    sleeps: bool
    for_lock: bool

    @property
    def is_own(self) -> bool:
        """Whether it has a coroutine of the program itself."""
        return any(not is_library(code.file) for code, _ in self.places)


class _Task(NamedTuple):
    address: int
    awaits: int
    """Address of the future for which it waits."""
    coroutine: int


def is_in_loop(key: Key) -> bool:
    """Return whether the innermost function of a stack is one in which an event loop waits."""
    if not key:
        return False
    file, name = key[0][0].file, _last(key[0][0])
    if file.endswith("/selectors.py") and name == "select":
        return len(key) > 1 and _is_in(key[1][0], "/asyncio/base_events.py", "_run_once")
    # A loop that is not in Python, such as uvloop.
    return file.endswith("/asyncio/runners.py") and name == "run"


def _last(code: Code) -> str:
    return code.function.rpartition(".")[2]


def _is_in(code: Code, file: str, function: str) -> bool:
    return code.file.endswith(file) and _last(code) == function


class Tasks:
    """The tasks of one process.

    Args:
        unwinder: the process's.
        version: its Python's major and minor version.
    """

    def __init__(self, unwinder: Unwinder, version: tuple[int, int]) -> None:
        self._unwinder, self._memory, self._version = unwinder, unwinder.memory, version
        self._layout = TASK_LAYOUTS.get(version)
        self._objects = Objects(unwinder.memory, unwinder.layout, version)
        self._set = 0
        """Address of the set of all tasks; 0: not found yet."""
        self._referents: dict[int, int] = {}
        """Weak reference -> its task."""
        self._known_inside: dict[tuple[int, int, int], bool] = {}
        """Tasks that waited for others, with the future and the instruction at that time, and
        whether they waited for a lock."""
        self._checked: set[int] = set()
        """Addresses of functions that need no check now: a function seldom gets another address."""
        self._stacks = 0

    def awaited(self, key: Key) -> Awaited | None:
        """Return a stack with the coroutines for which the event loop waits.

        The thread must wait now, and the stack must be the last one that was read.

        Args:
            key: the stack.

        Returns:
            The innermost function, the coroutines, a mark, and the rest of the stack. None: no
            coroutine of the program itself waits, or this is not known.

        Raises:
            UnwindError: the tasks have changed, or cannot be read.
        """
        if self._layout is None:
            return None
        self._stacks += 1
        if self._stacks % _CHECK_EVERY == 0:
            self._checked.clear()
        is_python = len(key) > 1 and key[0][0].file.endswith("/selectors.py")
        begin = 1 if is_python else 0
        frame = self._unwinder.frames[begin]
        loop = self._local(frame, 0) if is_python else 0
        root = self._root(key)
        root_chain = self._chain(root) if root else None
        if root_chain is not None and not root_chain.is_own:
            root_chain = None
        found, mark = self._choose(frame, loop, root, root_chain)
        if found is None:
            return None
        is_root = root_chain is None or root_chain.innermost == found.innermost
        callers = () if root_chain is None or is_root else root_chain.places
        return Awaited((key[0], *found.places, (mark, 0), *callers, *key[begin:]), found.sleeps)

    def _choose(
        self, frame: int, loop: int, root: int, root_chain: _Chain | None
    ) -> tuple[_Chain | None, Code]:
        """Return what the program waits for, and what other tasks wait for, as a mark."""
        outside: list[_Chain] = []
        inside: list[_Task] = []
        for_lock = False
        if root_chain is not None and not (root_chain.is_inside or root_chain.sleeps):
            outside.append(root_chain)
        is_complete = True
        for number, task in enumerate(self._waiting(frame, loop)):
            awake = sum(not one.sleeps for one in outside)
            if number == _MOST_TASKS or awake > 1 or len(outside) == _ENOUGH_TASKS:
                is_complete = False
                break
            chain, waits_for_lock = self._chain_outside(task)
            for_lock |= waits_for_lock
            if chain is None:
                if task.coroutine != root:
                    inside.append(task)
            elif all(chain.innermost != one.innermost for one in outside):
                outside.append(chain)
        if outside:
            found, others = outside[0], outside[1:]
            is_only = not found.sleeps and all(one.sleeps for one in others)
            if not is_complete or (others and not is_only):
                return found, ONE_OF_TASKS
            return found, FIRST_TASK if for_lock else ONLY_TASK
        for task in inside:
            chain = self._chain(task.coroutine)
            if chain is not None and chain.is_own:
                return chain, ONE_OF_TASKS
        return root_chain, ONE_OF_TASKS if inside else ONLY_TASK

    def _chain_outside(self, task: _Task) -> tuple[_Chain | None, bool]:
        """Return the coroutines of a task that waits for something outside; None if it does not.

        The second item is whether it waits for a lock.

        Most tasks of a program may wait for a lock or a queue. They are recognised by the future
        for which they wait, and by the instruction of their outermost coroutine.
        """
        known = task.address, task.awaits, self._instruction(task.coroutine)
        if known in self._known_inside:
            return None, self._known_inside[known]
        chain = self._chain(task.coroutine)
        if chain is None or chain.is_inside or not chain.is_own:
            if len(self._known_inside) >= _MOST_KNOWN:
                self._known_inside.clear()
            waits_for_lock = self._known_inside[known] = chain is not None and chain.for_lock
            return None, waits_for_lock
        return chain, False

    # ---- the tasks ----

    def _waiting(self, frame: int, loop: int) -> Iterator[_Task]:
        """Yield the tasks of an event loop that wait, in random order."""
        if not self._set:
            self._set = self._find_set(frame)
        references = self._objects.items_of_set(self._set)
        random.shuffle(references)
        for reference in references:
            with contextlib.suppress(UnwindError):  # the task was deleted
                task = self._task(self._referent(reference), loop)
                if task is not None:
                    yield task

    def _referent(self, reference: int) -> int:
        """Return the task of a weak reference; another object if the task was deleted."""
        found = self._referents.get(reference)
        if found is None:
            if len(self._referents) >= _MOST_KNOWN:
                self._referents.clear()
            found = self._referents[reference] = self._objects.referent(reference)
        return found

    def _find_set(self, frame: int) -> int:
        """Return the address of the set of all tasks, from a frame of asyncio."""
        names = self._memory.pointer(frame + self._offsets.frame_globals)
        module = self._objects.in_dict(names, "tasks")
        name = "_all_tasks" if self._version < (3, 12) else "_scheduled_tasks"
        return self._objects.set_of_weak_set(self._objects.in_module(module, name))

    def _task(self, address: int, loop: int) -> _Task | None:
        """Return a task that waits; None if it does not wait, or is another loop's.

        Args:
            address: its address; that of `None` if it was deleted.
            loop: the event loop; 0: any.
        """
        at = self._offsets
        data = self._memory.some(address, at.task_coroutine + 8)
        if len(data) < at.task_coroutine + 8:
            return None
        awaits, coroutine = struct.unpack_from("<QQ", data, at.task_coroutine - 8)
        is_pending = _INT.unpack_from(data, at.task_state)[0] == _PENDING
        is_of_loop = not loop or _POINTER.unpack_from(data, _LOOP)[0] == loop
        is_waiting = is_pending and is_of_loop and awaits and coroutine
        return _Task(address, awaits, coroutine) if is_waiting else None

    def _root(self, key: Key) -> int:
        """Return the coroutine that the event loop was started with; 0 if it is not known."""
        for place, (code, _) in enumerate(key[: _ROOT_FRAMES + 1]):
            if _is_in(code, "/asyncio/base_events.py", "run_until_complete"):
                task = self._task(self._local(self._unwinder.frames[place], 1), 0)
                return task.coroutine if task is not None else 0
            if _is_in(code, "/asyncio/runners.py", "run"):
                number = 0 if self._version < (3, 11) else 1
                return self._local(self._unwinder.frames[place], number)
        return 0

    # ---- the coroutines ----

    @property
    def _offsets(self) -> TaskLayout:
        if self._layout is None:
            raise UnwindError("the layout of the tasks of this Python is not known")
        return self._layout

    def _local(self, frame: int, number: int) -> int:
        return self._memory.pointer(frame + self._offsets.frame_locals + 8 * number)

    def _is_coroutine(self, address: int) -> bool:
        return address != 0 and self._objects.type_name(address) in _COROUTINES

    def _frame_of(self, coroutine: int) -> int:
        at = coroutine + self._offsets.coroutine_frame
        return self._memory.pointer(at) if self._version < (3, 11) else at

    def _instruction(self, coroutine: int) -> int:
        layout = self._unwinder.layout
        form, frame = ("<i" if layout.frame_owner is None else "<Q"), self._frame_of(coroutine)
        data = self._memory.read(frame + layout.frame_instruction, struct.calcsize(form))
        return int(struct.unpack(form, data)[0])

    def _chain(self, coroutine: int) -> _Chain | None:
        """Return the coroutines from an outermost one to the innermost one.

        None if the outermost one is of another kind, such as a coroutine of Cython.

        Raises:
            UnwindError: one of them has ended, or cannot be read.
        """
        places: list[Place] = []
        innermost, awaited = coroutine, ""
        if not self._is_coroutine(coroutine):
            return None
        for _ in range(_DEEPEST):
            innermost = coroutine
            frame = self._frame_of(coroutine)
            data = self._memory.some(frame, _FRAME_BYTES)
            place = self._unwinder.place_in((frame, data), self._checked)
            if place is None:
                raise UnwindError("a coroutine has ended")
            places.append(place)
            coroutine, awaited = self._next(self._awaited_by(frame, data))
            if not coroutine and self._version < (3, 12) and _is_in(place[0], _TASKS, "wait_for"):
                coroutine, awaited = self._of_task(self._local(frame, 0))
            if not coroutine:
                break
        inner = places[-1][0]
        is_asyncio = inner.file.endswith(_TASKS)
        is_inside = (
            awaited == _GATHERING
            or inner.file.endswith(_INSIDE)
            or (is_asyncio and _last(inner) not in _OUTSIDE)
            or _is_in(inner, "/asyncio/base_events.py", "serve_forever")
        )
        sleeps = is_asyncio and _last(inner) == "sleep"
        for_lock = _is_in(inner, "/asyncio/locks.py", "acquire")
        return _Chain(tuple(reversed(places)), innermost, is_inside, sleeps, for_lock)

    def _awaited_by(self, frame: int, data: bytes) -> int:
        """Return the object that a coroutine awaits: the last one of its values."""
        at = self._offsets.frame_stack
        if self._version < (3, 10):
            end = _POINTER.unpack_from(data, at)[0]
        elif self._version == (3, 10):
            end = _POINTER.unpack_from(data, _VALUES_3_10)[0] + 8 * _INT.unpack_from(data, at)[0]
        else:
            end = frame + self._offsets.frame_locals + 8 * _INT.unpack_from(data, at)[0]
        place = end - 8 - frame
        if 0 <= place <= len(data) - 8:
            return int(_POINTER.unpack_from(data, place)[0])
        return self._memory.pointer(end - 8)

    def _next(self, awaited: int) -> tuple[int, str]:
        """Return the next coroutine behind an awaited object, or 0 and the type of a future."""
        for _ in range(_DEEPEST):
            if not awaited:
                break
            name = self._objects.type_name(awaited)
            if name in _COROUTINES:
                return awaited, ""
            if name == _FUTURE:
                return self._of_task(self._memory.pointer(awaited + _LOOP))
            if name not in _WRAPPERS:
                break
            awaited = self._memory.pointer(awaited + _LOOP)
        return 0, ""

    def _of_task(self, future: int) -> tuple[int, str]:
        """Return the coroutine of a task that waits; 0 and the type if it is another future."""
        name = self._objects.type_name(future)
        task = self._task(future, 0) if name.endswith("Task") else None
        return (task.coroutine if task is not None else 0), name
