"""What a program did with its time, from the samples of all its processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile

from teho.explain.where import LineTimes, doing_of, main_process, place_of, spent_by
from teho.model.program import Doing, Feed, MainProcess, Part, Program
from teho.model.stack import Frame, Seen, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = ["program_of"]

_OPENING = lazy_pattern(
    r"\bopen\(|\bimread\(|\bread_\w+\(|\.read\w*\(|\bnp\.(load|fromfile)\(|\bFile\("
)
_STORES = lazy_pattern(
    r"-packages/(h5py|lmdb|zarr|netCDF4|tables)/|/python[^/]*/(sqlite3/|zipfile|tarfile)"
)
"""Libraries that read parts of one large file."""
_LOADERS = "torch/utils/data/"
_GRAIN = "grain/_src/python/"
_WORKER_LOOPS = ("_worker_loop", "_put_dataset_elements_in_buffer")
"""The main function of a worker: of PyTorch, and of Grain."""
_STARTING = frozenset(("__init__", "__iter__", "_get_iterator", "_reset", "_shutdown_workers"))
_STARTED_AGAIN = lazy_pattern(
    r"multiprocess(ing)?/(spawn\.py:(_main|spawn_main)|forkserver\.py:main)$"
)
"""Functions of a worker process that began with a new Python, and imported all modules again."""
_STARTS_PART = 0.2
_HALF = 0.5
_SHORTEST = 0.05
"""A main process has at least this part of the time of the longest one."""


def program_of(processes: Sequence[WatchedProcess]) -> Program | None:
    """Return what a program did; None if no Python process was observed for any time.

    The processes that requested batches or made steps do the program's work: one for each rank. If
    there are none, it is each rank of PyTorch's process group, or else the process whose main
    thread worked most. Workers that a pool starts again for a few tasks are no ranks.
    """
    watched = [one for one in processes if one.wall_s > 0]
    mains = [one for one in watched if one.progress or any(own.batches for own in one.loaders)]
    busiest = main_process(watched)
    if busiest is None:
        return None
    if _are_started_again(mains, busiest):
        mains = [busiest]
    mains = sorted(mains or _ranks(watched) or [busiest], key=lambda one: -one.wall_s)
    long = [one for one in mains if one.wall_s >= _SHORTEST * mains[0].wall_s]
    return Program(mains=tuple(_main(one, long, processes) for one in long))


def _ranks(processes: Sequence[WatchedProcess]) -> list[WatchedProcess]:
    """Return the processes that exchange data with each other, with those of the same nodes.

    A rank that waits for no other may exchange its data too quickly to be seen: it has the same
    parent as the others, and runs at the same time.
    """
    exchange = [
        one
        for one in processes
        if any(doing_of(seen) is Doing.COMMUNICATING for seen in one.stacks)
    ]
    if not exchange:
        return []
    least_s = _HALF * max(one.wall_s for one in exchange)
    parents = {(one.node, one.parent_pid) for one in exchange}
    return [
        one
        for one in processes
        if one in exchange or ((one.node, one.parent_pid) in parents and one.wall_s >= least_s)
    ]


def _are_started_again(mains: Sequence[WatchedProcess], parent: WatchedProcess) -> bool:
    """Return whether these are short workers that begin with a new Python and import for long.

    The process that starts them again and again is then the one to be judged.
    """
    if not mains or max(one.wall_s for one in mains) >= _HALF * parent.wall_s:
        return False
    imports_s = sum(
        seen.wall_s for one in mains for seen in one.stacks if doing_of(seen) is Doing.IMPORTING
    )
    return imports_s >= _STARTS_PART * sum(one.wall_s for one in mains) and all(
        one.node == parent.node
        and any(
            _STARTED_AGAIN.search(place_of(frame)) for seen in one.stacks for frame in seen.frames
        )
        for one in mains
    )


def _workers_of(
    process: WatchedProcess, processes: Sequence[WatchedProcess]
) -> list[WatchedProcess]:
    """Return the workers that load data for a process: its children, or its fork server's."""
    children = [
        one for one in processes if (one.node, one.parent_pid) == (process.node, process.pid)
    ]
    parents = {process.pid, *(one.pid for one in children if not _is_worker(one))}
    return [
        one
        for one in processes
        if one.node == process.node
        and one.parent_pid in parents
        and one.wall_s > 0
        and _is_worker(one)
    ]


def _children_of(
    process: WatchedProcess,
    processes: Sequence[WatchedProcess],
    besides: Sequence[WatchedProcess],
) -> list[WatchedProcess]:
    """Return the processes that a process and its children started, without `besides`."""
    known = {process.pid}
    found: list[WatchedProcess] = []
    for one in sorted(processes, key=lambda one: one.began_s):
        if one.node == process.node and one.parent_pid in known and one.pid not in known:
            known.add(one.pid)
            if one not in besides and one.wall_s > 0:
                found.append(one)
    return found


def _main(
    process: WatchedProcess,
    mains: Sequence[WatchedProcess],
    processes: Sequence[WatchedProcess],
) -> MainProcess:
    workers = _workers_of(process, processes)
    main_s: dict[Part, float] = defaultdict(float)
    workers_s: dict[Part, float] = defaultdict(float)
    lines = LineTimes()
    for parts_s, one in ((main_s, process), *((workers_s, worker) for worker in workers)):
        for seen in one.stacks:
            if doing_of(seen) is not Doing.LOADING:
                continue
            part = _part(seen)
            parts_s[part] += seen.wall_s
            if part in (Part.FETCHING, Part.OPENING):
                lines.add(seen)
    return MainProcess(
        process=process,
        spent=tuple(spent_by(process)),
        feed=Feed(
            loader=max(process.loaders, key=lambda one: (one.wait_s, one.batches), default=None),
            main_s=dict(main_s),
            workers_s=dict(workers_s),
            workers=len(workers),
            workers_without_core_percent=_without_core_percent(workers),
            lines=lines.slowest(),
        ),
        workers=tuple(workers),
        children=tuple(_children_of(process, processes, [*mains, *workers])),
    )


def _without_core_percent(workers: Sequence[WatchedProcess]) -> float | None:
    times = [(one.wait_for_core_s, one.wall_s) for one in workers]
    known = [(wait_s, wall_s) for wait_s, wall_s in times if wait_s is not None and wall_s > 0]
    if not known:
        return None
    return 100 * sum(wait_s for wait_s, _ in known) / sum(wall_s for _, wall_s in known)


def _is_worker(process: WatchedProcess) -> bool:
    return any(
        frame.function.endswith(_WORKER_LOOPS) for seen in process.stacks for frame in seen.frames
    )


def _part(seen: Seen) -> Part:
    """Return which part of loading a stack is in, by the functions on it."""
    # The innermost match counts: a forked worker has its parent's stack below its own.
    for frame in seen.frames:
        file, function = frame.file.rpartition(_LOADERS)[2], frame.function.rpartition(".")[2]
        if file == "_utils/collate.py":
            return Part.COLLATING
        if file == "_utils/fetch.py":
            return Part.OPENING if _opens_a_file(seen.frames[0]) else Part.FETCHING
        if function in _WORKER_LOOPS:
            return Part.IDLE
        if _GRAIN in file:
            return _part_of_grain(seen, file)
        if file == "dataloader.py" and function in _STARTING:
            return Part.STARTING
        if file == "dataloader.py" and function == "__next__":
            break
    return Part.AWAITING


def _part_of_grain(seen: Seen, innermost: str) -> Part:
    """Return which part of loading a stack of Grain is in.

    Args:
        seen: the stack.
        innermost: the innermost of its files that belongs to Grain.
    """
    inside = takewhile(lambda frame: _GRAIN not in frame.file, seen.frames)
    if any(not is_library(frame.file) for frame in inside):
        return Part.OPENING if _opens_a_file(seen.frames[0]) else Part.FETCHING
    if innermost.endswith("/batch.py"):
        return Part.COLLATING
    is_worker = any(frame.function.endswith(_WORKER_LOOPS) for frame in seen.frames)
    return Part.IDLE if is_worker else Part.AWAITING


def _opens_a_file(innermost: Frame) -> bool:
    return bool(_OPENING.search(innermost.text)) and not _STORES.search(innermost.file)
