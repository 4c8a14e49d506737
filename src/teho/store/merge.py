"""One recording out of the parts that the nodes of a step kept for themselves.

If nodes share no files, each that began a recording has one: of its own rows, and of the tasks
that ran there. They belong together by the key of their step.
"""

from __future__ import annotations

import filecmp
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from teho.errors import RecordingError
from teho.model.run import Node, Run, RunState, Step, Task
from teho.store.layout import (
    live_parts,
    new_run_id,
    node_file,
    output_file,
    overview_file,
    replace_file,
    run_file,
    runs_directory,
    sealed_file,
    task_file,
)
from teho.store.read import read_run, run_state

__all__ = ["merge_parts"]

_LABEL = re.compile(r"\d{8}-\d{6}-(.+)-[a-z0-9]{4}")


class _Part(NamedTuple):
    directory: Path
    run: Run
    step: Step


def merge_parts(directories: Sequence[Path], home: Path) -> Path:
    """Copy parts of one step into a new recording, and return its directory; the parts stay.

    Args:
        directories: the parts.
        home: the directory of all recordings.

    Raises:
        RecordingError: they are not parts of one step, contradict each other, do not read, or
            still grow.
        OSError: the new recording cannot be written.
    """
    parts = [_read(directory) for directory in directories]
    first = _first(parts)
    for part in parts:
        _check_same_step(first, part)
    nodes, tasks = _nodes(parts), _tasks(parts)
    label = _LABEL.fullmatch(first.run.id)
    run_id = new_run_id(first.run.started_at, label.group(1) if label else "merged")
    runs_directory(home).mkdir(mode=0o700, parents=True, exist_ok=True)
    unborn = runs_directory(home) / f".{run_id}"
    try:
        for folder in (unborn, *(unborn / name for name in ("nodes", "live", "samples", "tasks"))):
            folder.mkdir(mode=0o700)
        for part, node in nodes:
            _copy_node(part, node, first, unborn)
        for task in tasks:
            replace_file(task_file(unborn, task.rank), msgspec.json.encode(task))
        for part in parts:
            if output_file(part.directory).exists():
                replace_file(output_file(unborn), output_file(part.directory).read_bytes())
        run = _description(first, parts, run_id)
        replace_file(run_file(unborn), msgspec.json.encode(run))
        return unborn.rename(runs_directory(home) / run_id)
    except BaseException:
        shutil.rmtree(unborn, ignore_errors=True)
        raise


def _read(directory: Path) -> _Part:
    run = read_run(directory)
    if run.step is None:
        raise RecordingError(
            f"{directory}: a run of one program, of no job's step",
            "parts of one step",
            "`teho show RUN` prints a run's step",
        )
    if run_state(run, directory) is RunState.RUNNING:
        raise RecordingError(
            f"{directory}: still grows", "parts that have ended", "merge them when the job is over"
        )
    return _Part(directory, run, run.step)


def _first(parts: Sequence[_Part]) -> _Part:
    """Return the part that tells of the whole: how it ended, or else what its first node saw."""
    return min(parts, key=lambda part: (part.run.end is None, _place(part), part.run.started_at))


def _place(part: _Part) -> int:
    hosts, began_on = part.step.hosts, part.step.began_on
    return hosts.index(began_on) if began_on in hosts else len(hosts)


def _check_same_step(first: _Part, part: _Part) -> None:
    if part.step.key != first.step.key:
        raise RecordingError(
            f"{part.directory}: of step {part.step.key}",
            f"of {first.step.key}, as {first.directory}",
            "merge only the parts of one step",
        )


def _nodes(parts: Sequence[_Part]) -> list[tuple[_Part, Node]]:
    """Return each node once, with the part that has its rows.

    Raises:
        RecordingError: two parts say different things of one node.
    """
    known: dict[str, tuple[_Part, Node]] = {}
    for part in parts:
        for node in part.run.nodes:
            other, same = known.setdefault(node.name, (part, node))
            if same != node or not _are_alike(_rows(other, node), _rows(part, node)):
                raise _twice(f"node {node.name}", other, part)
    return list(known.values())


def _tasks(parts: Sequence[_Part]) -> list[Task]:
    """Return each task once.

    Raises:
        RecordingError: two parts say different things of one task.
    """
    known: dict[int, tuple[_Part, Task]] = {}
    for part in parts:
        for task in part.run.tasks:
            other, same = known.setdefault(task.rank, (part, task))
            if same != task:
                raise _twice(f"rank {task.rank}", other, part)
    return [task for _, task in known.values()]


def _twice(name: str, one: _Part, other: _Part) -> RecordingError:
    return RecordingError(
        f"{name} is in {one.directory}, and with other content in {other.directory}",
        "each node's own part",
        "leave out the one that is not of this step",
    )


def _rows(part: _Part, node: Node) -> list[Path]:
    """Return the files that hold a node's rows."""
    sealed = sealed_file(part.directory, node.name)
    return [sealed] if sealed.exists() else live_parts(part.directory, node.name)


def _are_alike(files: Sequence[Path], others: Sequence[Path]) -> bool:
    names = [[path.name for path in some] for some in (files, others)]
    return names[0] == names[1] and all(
        one == other or filecmp.cmp(one, other, shallow=False)
        for one, other in zip(files, others, strict=True)
    )


def _copy_node(part: _Part, node: Node, first: _Part, target: Path) -> None:
    overview = overview_file(part.directory, node.name)
    for path in (*_rows(part, node), *([overview] if overview.exists() else [])):
        replace_file(target / path.parent.name / path.name, path.read_bytes())
    if part.step.began_on != first.step.began_on:
        # Its clock was compared with that of another node, or of none.
        node = msgspec.structs.replace(node, clock=None, clock_port=None)
    replace_file(node_file(target, node.name), msgspec.json.encode(node))


def _description(first: _Part, parts: Sequence[_Part], run_id: str) -> Run:
    """Return what `run.json` is to say."""
    told = {trouble: None for part in parts for trouble in part.run.troubles}
    # The end of a step of several tasks is that of its tasks, and is in no file.
    end = None if first.run.has_tasks else first.run.end
    return msgspec.structs.replace(
        first.run, id=run_id, end=end, troubles=tuple(told), nodes=(), tasks=()
    )
