"""Merges the parts of a step's recording that are on different nodes.

If the nodes have no shared file system, each node has a recording with its own rows and tasks. All
of them have the same step key.
"""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from teho.errors import RecordingError
from teho.model.run import Node, Run, RunState, Step, Task
from teho.patterns import lazy_pattern
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
from teho.store.steps import create_step_directory

__all__ = ["merge_parts"]

_LABEL = lazy_pattern(r"\d{8}-\d{6}-(.+)-[a-z0-9]{4}")
_Noun = TypeVar("_Noun", Node, Task)


class _Part(NamedTuple):
    directory: Path
    run: Run
    step: Step


def merge_parts(directories: Sequence[Path], home: Path) -> Path:
    """Copy the parts of one step into a new recording, and return its directory.

    Args:
        directories: the parts.
        home: the directory of all recordings.

    Raises:
        RecordingError: they are not parts of one step, have different content for one node or
            task, cannot be read, or still grow.
        OSError: the new recording cannot be written.
    """
    parts = [_read(directory) for directory in directories]
    first = _first(parts)
    for part in parts:
        _check_same_step(first, part)
    nodes = _once("node", ((part, node.name, node) for part in parts for node in part.run.nodes))
    for name, (kept, node) in nodes.items():
        for part in parts:
            if node in part.run.nodes and not _are_alike(_rows(kept, node), _rows(part, node)):
                raise _contradiction(f"node {name}", kept, part)
    tasks = _once("rank", ((part, task.rank, task) for part in parts for task in part.run.tasks))
    label = _LABEL.fullmatch(first.run.id)
    run_id = new_run_id(first.run.started_at, label.group(1) if label else "merged")
    runs_directory(home).mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = create_step_directory(home, f".{run_id}")
    try:
        for part, node in nodes.values():
            _copy_node(part, node, first, temporary)
        for _, task in tasks.values():
            replace_file(task_file(temporary, task.rank), msgspec.json.encode(task))
        for part in parts:
            if output_file(part.directory).exists():
                replace_file(output_file(temporary), output_file(part.directory).read_bytes())
        run = _description(first, parts, run_id)
        replace_file(run_file(temporary), msgspec.json.encode(run))
        return temporary.rename(runs_directory(home) / run_id)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _read(directory: Path) -> _Part:
    run = read_run(directory)
    if run.step is None:
        raise RecordingError(
            f"{directory} is a run of one program, not of a job's step",
            "parts of one step",
            "`teho show RUN` prints the step of a run",
        )
    if run_state(run, directory) is RunState.RUNNING:
        raise RecordingError(
            f"{directory} is still being written",
            "parts that have ended",
            "merge them when the job is over",
        )
    return _Part(directory, run, run.step)


def _first(parts: Sequence[_Part]) -> _Part:
    """Return the part with the end of the run; if there is none, the part of the first node."""

    def order(part: _Part) -> tuple[bool, int, datetime]:
        hosts, began_on = part.step.hosts, part.step.began_on
        place = hosts.index(began_on) if began_on in hosts else len(hosts)
        return part.run.end is None, place, part.run.started_at

    return min(parts, key=order)


def _check_same_step(first: _Part, part: _Part) -> None:
    if part.step.key != first.step.key:
        raise RecordingError(
            f"{part.directory} belongs to step {part.step.key}",
            f"a part of step {first.step.key}, like {first.directory}",
            "merge only the parts of one step",
        )


def _once(
    kind: str, found: Iterable[tuple[_Part, Hashable, _Noun]]
) -> dict[Hashable, tuple[_Part, _Noun]]:
    """Return each node or task once, by its name, with the first part that has it.

    Raises:
        RecordingError: two parts have different content for one of them.
    """
    known: dict[Hashable, tuple[_Part, _Noun]] = {}
    for part, name, noun in found:
        other, same = known.setdefault(name, (part, noun))
        if same != noun:
            raise _contradiction(f"{kind} {name}", other, part)
    return known


def _contradiction(name: str, one: _Part, other: _Part) -> RecordingError:
    return RecordingError(
        f"{one.directory} and {other.directory} have different content for {name}",
        "one part for each node",
        "leave out the part that does not belong to this step",
    )


def _rows(part: _Part, node: Node) -> list[Path]:
    """Return the files with a node's rows."""
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
        # Its clock was compared with the clock of another node, or was not compared.
        node = msgspec.structs.replace(node, clock=None, clock_port=None)
    replace_file(node_file(target, node.name), msgspec.json.encode(node))


def _description(first: _Part, parts: Sequence[_Part], run_id: str) -> Run:
    """Return the content of `run.json`."""
    troubles = dict.fromkeys(trouble for part in parts for trouble in part.run.troubles)
    # A step of several tasks ends when its tasks end. Its end is computed, not stored.
    end = None if first.run.has_tasks else first.run.end
    return msgspec.structs.replace(
        first.run, id=run_id, end=end, troubles=tuple(troubles), nodes=(), tasks=()
    )
