"""What the main thread of a Python program was doing, from its stacks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from teho.model.program import Doing, Spent
from teho.model.stack import Frame, Seen, State, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = [
    "BACKWARD",
    "IMPORTS",
    "LOADER_FILES",
    "LineTimes",
    "doing_in",
    "doing_of",
    "is_for_next_task",
    "main_process",
    "place_of",
    "spent_by",
    "time_in",
]

_LINES = 3
"""Number of lines that are named for each activity."""

LOADER_FILES = lazy_pattern(
    r"torch/utils/data/|tensorflow/python/data/|datasets/iterable_|grain/_src/python/"
)
"""Files of the libraries that load data."""

BACKWARD = lazy_pattern(r"torch/(_tensor\.py:(Tensor\.)?backward|autograd/__init__\.py:backward)$")
"""Functions of PyTorch that begin a backward pass."""

IMPORTS = lazy_pattern(r"<frozen importlib\._bootstrap")
"""Files of Python that import modules."""

# The first pattern that matches a function on the stack counts. A stack is read from the outside
# in: a file that is imported in order to save something counts as saving.
_BY_PLACE = (
    (Doing.LOADING, LOADER_FILES),
    (
        Doing.COMMUNICATING,
        # Other files of it are on the stack of everything that they wrap, such as `record`.
        lazy_pattern(
            r"torch/distributed/(distributed_c10d|_functional_coll|rendezvous)|horovod/|mpi4py/"
        ),
    ),
    (
        Doing.COMPILING,
        lazy_pattern(
            # Without the functions of the same folders that call compiled code, and `torch.func`.
            r"torch/_dynamo/(convert_frame|symbolic_convert|output_graph)\.py"
            r"|torch/_inductor/(graph|scheduler|lowering|async_compile|cpp_builder)\.py"
            r"|torch/_inductor/(codegen|fx_passes|kernel|pattern_matcher)[/.]"
            r"|torch/_inductor/compile_fx\.py:(.*\.)?\w*(compile|compiler|compile_fx\w*)$"
            r"|torch/_inductor/codecache\.py:(?!CompiledFxGraph\.(__call__|_run_from_cache)$)"
            r"|torch/_inductor/runtime/(compile_tasks|autotune_\w+)\.py"
            r"|torch/_inductor/runtime/triton_heuristics\.py:.*(precompile|autotune|bench)\w*$"
            r"|triton/compiler/|triton/runtime/autotuner\.py:.*bench"
            r"|jax/_src/compiler|numba/core/|cupy/cuda/compiler"
            # Without the functions that call compiled code or copy its arguments.
            r"|jax/_src/interpreters/"
            r"(?!pxla\.py:((\w+\.)?(__)?call(__)?|_?shard_\w+|batched_device_put)\b)"
        ),
    ),
    (
        Doing.SAVING,
        lazy_pattern(
            r"(torch/serialization\.py|torch/distributed/checkpoint/|safetensors/|orbax/"
            r"|numpy/lib/\w*npyio|lightning/\w+/utilities/cloud_io\.py|/model_checkpoint\.py"
            r"|accelerate/checkpointing\.py|keras/.*saving).*:.*save"
            r"|transformers/trainer\.py:(\w+\.)?_?save\w*$"
        ),
    ),
    (Doing.IMPORTING, IMPORTS),
    # These functions are Python: the call into C below them has no name.
    (
        Doing.COPYING,
        lazy_pattern(
            r"cupy/_creation/from_data\.py:\w*array$"
            r"|jax/_src/interpreters/pxla\.py:(shard_args|batched_device_put)$"
        ),
    ),
    (
        Doing.DEVICE,
        lazy_pattern(r"cupy/__init__\.py:asnumpy$|jax/_src/array\.py:(ArrayImpl\.)?_value$"),
    ),
)
_OUTSIDE = "<python>"
"""File of a stack without any function."""
# Calls into C have no frame: the text of the innermost Python line names them.
_BY_CALL = (
    (
        Doing.DEVICE,
        lazy_pattern(r"\.(item|cpu|tolist|block_until_ready|asnumpy)\(|synchronize\(|asnumpy\("),
    ),
    (Doing.COPYING, lazy_pattern(r"\.(to|cuda|pin_memory)\(|device_put\(|cupy\.(asarray|array)\(")),
    (
        Doing.COMMUNICATING,
        lazy_pattern(r"\.(allreduce|all_reduce|bcast|Allreduce|Bcast|barrier)\("),
    ),
    (Doing.SAVING, lazy_pattern(r"\b(torch|np|numpy|jnp)\.save\w*\(|pickle\.dump\(")),
)
_DEVICE_DOINGS = frozenset((Doing.DEVICE, Doing.COPYING))
# Below these calls, other threads add up the gradients of all replicas.
_ADDING_UP = lazy_pattern(r"\.backward\(|\bbackward\(|\.step\(")
_SERVES_ITS_PARENT = lazy_pattern(
    r"multiprocessing/pool\.py:worker$|concurrent/futures/process\.py:_process_worker$"
    r"|loky/process_executor\.py:_process_worker$"
    r"|multiprocessing/managers\.py:(BaseManager\.)?_run_server$"
    r"|/(socketserver\.py:(BaseServer\.)?|asyncio/base_events\.py:(Server\.)?)serve_forever$"
)
"""Main function of a worker of a pool, of a manager of shared objects, or of a server."""
_ASKED = lazy_pattern(r"multiprocessing/(connection\.py:.*\b_?recv\w*|queues\.py:.*\bget)$")
"""Functions with which a process waits for the next task."""
_IN_CHILD = lazy_pattern(r"/multiprocessing/process\.py:(BaseProcess\.)?_bootstrap$")
_ASKED_SHARE = 0.02
"""A process that waits for tasks for this share of its time or more does them for another one."""
_POLLING = lazy_pattern(r"joblib/parallel\.py:(Parallel\.)?(_?retrieve|_get_outputs)$")
"""Function that sleeps until a worker process has a result."""
_WAITS = frozenset((State.LOCK, State.PROCESS, State.NETWORK))


def place_of(frame: Frame) -> str:
    """Return the file and the function of a frame, as patterns read them."""
    return f"{frame.file}:{frame.function}"


def doing_of(seen: Seen, *, has_device: bool = True, has_ranks: bool = False) -> Doing:
    """Return what a stack was doing.

    By the functions of libraries on the stack; then by the innermost call; then by the state of the
    thread in the kernel and the interpreter.

    Args:
        seen: the stack.
        has_device: whether there is a device; if not, `.item()` does not wait for one.
        has_ranks: whether there are other ranks, for which `.backward()` may wait.
    """
    excluded = frozenset() if has_device else _DEVICE_DOINGS
    for frame in reversed(seen.frames):
        for doing in _doings_of(frame.file, frame.function):
            if doing not in excluded:
                return doing
    innermost = seen.frames[0] if seen.frames else None
    if innermost and innermost.file == _OUTSIDE:
        return Doing.ENDING
    if innermost and seen.state is State.SLEEPING and _POLLING.search(place_of(innermost)):
        return Doing.PROCESS
    if innermost:
        for doing, pattern in _BY_CALL:
            if doing not in excluded and pattern.search(innermost.text):
                return doing
    adds_up = has_ranks and any(_ADDING_UP.search(frame.text) for frame in seen.frames)
    if adds_up and seen.state in _WAITS:
        return Doing.COMMUNICATING
    return Doing[seen.state.name]


@lru_cache(maxsize=65536)
def _doings_of(file: str, function: str) -> tuple[Doing, ...]:
    """Return what a function does: many stacks have the same functions."""
    place = f"{file}:{function}"
    return tuple(doing for doing, pattern in _BY_PLACE if pattern.search(place))


def doing_in(process: WatchedProcess, seen: Seen) -> Doing:
    """Return what a stack of this process was doing."""
    return doing_of(seen, has_device=process.may_use_device, has_ranks=process.is_one_of_several)


class LineTimes:
    """The time of each line of the user's program."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, int], tuple[Frame, float]] = {}

    def add(self, seen: Seen) -> None:
        """Add the time of a stack to its innermost line of the user's program."""
        frame = next((frame for frame in seen.frames if not is_library(frame.file)), None)
        if frame:
            key = frame.file, frame.line
            first, wall_s = self._lines.get(key, (frame, 0.0))
            self._lines[key] = first, wall_s + seen.wall_s

    def slowest(self) -> tuple[tuple[Frame, float], ...]:
        """Return the few lines that took the most time, most first."""
        return tuple(sorted(self._lines.values(), key=lambda pair: -pair[1])[:_LINES])


def spent_by(process: WatchedProcess) -> list[Spent]:
    """Return the whole time of a process by what it was doing, most first."""
    walls: dict[Doing, float] = defaultdict(float)
    lines: dict[Doing, LineTimes] = defaultdict(LineTimes)
    for seen in process.stacks:
        doing = doing_in(process, seen)
        walls[doing] += seen.wall_s
        lines[doing].add(seen)
    return [
        Spent(doing=doing, wall_s=wall_s, lines=lines[doing].slowest())
        for doing, wall_s in sorted(walls.items(), key=lambda pair: -pair[1])
    ]


def time_in(
    process: WatchedProcess, functions: re.Pattern[str], *, by_own_line: bool = False
) -> tuple[float, tuple[tuple[Frame, float], ...]]:
    """Return the time in some functions in s, and the program's lines that call them.

    Args:
        process: a Python process.
        functions: pattern for `FILE:FUNCTION`.
        by_own_line: whether only functions count that the program's innermost line called. In
            Lightning, the optimizer calls the forward pass.
    """
    total_s, lines = 0.0, LineTimes()
    for seen in process.stacks:
        frames = seen.frames
        if by_own_line:
            frames = tuple(takewhile(lambda one: is_library(one.file), frames))
        if any(functions.search(place_of(frame)) for frame in frames):
            total_s += seen.wall_s
            lines.add(seen)
    return total_s, lines.slowest()


def main_process(processes: Sequence[WatchedProcess]) -> WatchedProcess | None:
    """Return the process that does the program's work: its main thread worked most.

    A launcher such as torchrun waits for its children, and loader workers wait for requests. A
    process that lasted for less than half of the longest one does only a part of the work. If the
    process is a worker of a pool, a manager of shared objects or a server, the process that created
    it counts. So it does if both mostly sleep: each of them waits for the other one.
    """
    longest_s = max((one.wall_s for one in processes), default=0.0)
    found = max(
        (one for one in processes if 2 * one.wall_s >= longest_s),
        key=lambda process: process.ran_s,
        default=None,
    )
    by_id = {(one.node, one.pid): one for one in processes}
    while found is not None and _serves_its_parent(found):
        parent = by_id.get((found.node, found.parent_pid))
        if parent is None or parent is found:
            break
        found = parent
    above = by_id.get((found.node, found.parent_pid)) if found is not None else None
    if found is not None and above is not None and _wait_for_each_other(found, above):
        return above
    return found


def _wait_for_each_other(child: WatchedProcess, parent: WatchedProcess) -> bool:
    """Return whether a process and the child process that does its work mostly sleep."""
    is_child = any(_IN_CHILD.search(place_of(one)) for s in child.stacks for one in s.own_frames)
    return is_child and all(
        2 * sum(seen.wall_s for seen in one.stacks if seen.state is State.SLEEPING) > one.wall_s
        for one in (child, parent)
    )


def is_for_next_task(seen: Seen) -> bool:
    """Return whether a child process waits for its next task."""
    places = [place_of(frame) for frame in seen.own_frames]
    return any(map(_ASKED.search, places)) and any(map(_IN_CHILD.search, places))


def _serves_its_parent(process: WatchedProcess) -> bool:
    """Return whether a process does what the process that created it asks for."""
    asked_s = 0.0
    for seen in process.stacks:
        places = [place_of(frame) for frame in seen.own_frames]
        if any(map(_SERVES_ITS_PARENT.search, places)):
            return True
        if is_for_next_task(seen):
            asked_s += seen.wall_s
    return not process.progress and asked_s > _ASKED_SHARE * process.wall_s
