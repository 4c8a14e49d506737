"""Finds locks that a thread holds while it reads, decompresses or computes with arrays.

Such work may run in several threads at the same time, because it does not hold the interpreter
lock. If the program does it in the block of `with lock:`, the threads do it one after the other.
The stack shows a thread in the block; the source shows the lock, and that the work uses nothing
that the threads share.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from teho.model.in_source import CostlyOption
from teho.model.stack import Frame
from teho.patterns import lazy_pattern
from teho.source.changes import named_values
from teho.source.parsed import Function, dotted_name, root_name
from teho.source.program import Place, is_imported
from teho.source.purity import Purity
from teho.source.stack import Level

__all__ = ["find_held_lock"]

_LOCKS = frozenset(("threading.Lock", "threading.RLock"))
_THREAD = "<thread>"
"""File of the frame between the functions of another thread and those of the main thread."""
_RUNS_BESIDE = lazy_pattern(
    r"/(bz2|lzma|gzip|zlib|_compression|zipfile|tarfile|hashlib|ssl|socket|subprocess|shutil)\.py$"
    r"|/(http|urllib|urllib3|requests|httpx|httpcore|PIL|botocore|numpy|scipy|skimage|torch)/"
)
"""Files of libraries that give the interpreter lock back while they work or wait."""
_CALLS = lazy_pattern(
    r"\b(read|readinto|recv|decompress|compress|sleep|urlopen|digest|hexdigest|sha\w+|md5|crc32"
    r"|fromfile|fsync|check_output|communicate)\("
)
"""Innermost lines that do the same."""
_ONLY_READS = frozenset(("tobytes", "encode", "copy", "astype", "ravel", "reshape", "getvalue"))
"""Methods that only read their object, and return a new value."""


class _Block(NamedTuple):
    """The block of a lock around a line."""

    node: ast.With
    lock: str


def find_held_lock(
    levels: Sequence[Level], frames: Sequence[Frame], purity: Purity
) -> CostlyOption | None:
    """Return the `with` of the lock that another thread than the main thread holds.

    Args:
        levels: the program's functions on the stack, the outermost first: those of the main thread,
            and then those of the thread.
        frames: the stack, innermost frame first.
        purity: the program.
    """
    if not any(frame.file == _THREAD for frame in frames):
        return None
    inner = frames[0]
    if not _RUNS_BESIDE.search(inner.file) and not _CALLS.search(inner.text):
        return None
    for level in reversed(levels):
        block = _block(level, purity)
        if block is None:
            continue
        if not isinstance(level.node, ast.Call) or not _is_alone(level.node, block, level, purity):
            return None
        frame, line = level.frame, block.node.lineno
        text = level.file.line_text(line).rstrip(":")
        return CostlyOption(
            name="lock_held",
            at=Frame(frame.file, frame.function, line, text),
            lines=(frame,),
        )
    return None


def _block(level: Level, purity: Purity) -> _Block | None:
    """Return the innermost block of a lock that a level's line is always in; None: there is none.

    If the work is done only under a condition, such as that a cache does not have the result, the
    block may have to be around it.
    """
    found = None
    for node in level.function.nodes:
        if not isinstance(node, ast.With) or len(node.items) != 1:
            continue
        lock = dotted_name(node.items[0].context_expr)
        first, last = node.body[0].lineno, node.end_lineno or 0
        is_around = bool(lock) and first <= level.frame.line <= last
        if is_around and _is_lock(lock, level, purity) and not _is_chosen(node, level.frame.line):
            found = _Block(node, lock)
    return found


def _is_lock(name: str, level: Level, purity: Purity) -> bool:
    """Return whether a file always makes a lock of threads where it gives this name a value."""
    last = name.rpartition(".")[2]
    called = [
        purity.program.called(value, level.place) if isinstance(value, ast.Call) else None
        for function in level.function.module.every()
        for node in function.nodes
        for target, value in named_values(node)
        if dotted_name(target).rpartition(".")[2] == last
    ]
    return bool(called) and all(isinstance(one, str) and one in _LOCKS for one in called)


def _is_chosen(block: ast.With, line: int) -> bool:
    """Return whether a condition inside a block, or a loop that may end, leads to a line."""
    return any(
        isinstance(node, (ast.If, ast.While, ast.Try, ast.Match))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
        for node in ast.walk(block)
    )


def _is_alone(call: ast.Call, block: _Block, level: Level, purity: Purity) -> bool:
    """Return whether a call uses only objects that its function makes, and no shared file.

    A method of the program may use what the threads share, if nothing changes it.
    """
    function = level.function
    for node in ast.walk(call):
        if not isinstance(node, ast.Call):
            continue
        method = node.func
        if isinstance(method, ast.Attribute):
            name = root_name(method.value)
            if isinstance(method.value, (ast.Call, ast.Constant)):
                continue  # `open(path).read()`: the call before is examined too
            if is_imported(name, function):
                continue
            if _is_own_and_pure(node, level, purity):
                continue
            is_local = isinstance(method.value, ast.Name) and function.binds(name)
            if method.attr in _ONLY_READS and is_local:
                continue
            if not name or not _is_made_in(name, block.node, function):
                return False
        elif not isinstance(method, ast.Name) or method.id in function.params:
            return False
    return True


def _is_own_and_pure(call: ast.Call, level: Level, purity: Purity) -> bool:
    """Return whether a call is of a method of the program that changes nothing: `self.measure(x)`.

    What such a method reads of `self` stays the same.
    """
    called = purity.program.called(call, level.place)
    return isinstance(called, Place) and purity.is_pure_function(called)


def _is_made_in(name: str, block: ast.With, function: Function) -> bool:
    """Return whether a function gives a name its value in the block, and with a call."""
    given = function.assigned.get(name, [])
    return bool(given) and all(
        block.lineno < one.line <= (block.end_lineno or 0) and isinstance(one.value, ast.Call)
        for one in given
    )
