"""Finds the traces of the framework's profiler in a recording."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from teho.model.profiling import ProfilerUse
from teho.store.layout import TRACE_ENDINGS, probe_folder, trace_folder

__all__ = ["Answers", "base_name", "newest_traces", "plan_of_trace", "trace_of", "traces_of_plan"]


def trace_of(run: Path, node: str, name: str) -> Path:
    """Return the path of a trace.

    Args:
        run: the run's directory.
        node: the node's name.
        name: of the file in the node's spool.
    """
    return trace_folder(run) / f"{node}-{name}.gz"


def traces_of_plan(run: Path, plan: str) -> list[Path]:
    """Return the traces of one plan, by name.

    Args:
        run: the run's directory.
        plan: its id.
    """
    return [path for path in _traces(run) if plan_of_trace(path) == plan]


def newest_traces(run: Path) -> list[Path]:
    """Return the traces of the newest plan of a run, by name; empty if the run has none."""
    found = {path: path.stat().st_mtime for path in _traces(run)}
    if not found:
        return []
    return traces_of_plan(run, plan_of_trace(max(found, key=found.__getitem__)))


def plan_of_trace(path: Path) -> str:
    """Return the id of the plan that a trace belongs to."""
    return base_name(path).rpartition("-")[2]


def base_name(path: Path) -> str:
    """Return the name of a trace without its endings."""
    name = path.name.removesuffix(".gz")
    for ending in (".pt.trace.json", *TRACE_ENDINGS):
        name = name.removesuffix(ending)
    return name


def _traces(run: Path) -> list[Path]:
    """Return all traces of a run; a name with a dot in front is a file that is being written."""
    return sorted(
        path for ending in TRACE_ENDINGS for path in trace_folder(run).glob(f"[!.]*{ending}.gz")
    )


class Answers:
    """What the probes of a run note about a plan during the run.

    Args:
        run: the run's directory.
        plan: the plan's id.
    """

    def __init__(self, run: Path, plan: str) -> None:
        self._run = run
        self._mark = f'"profile": "{plan}"'.encode()
        self._read: dict[Path, int] = {}
        self._found: list[tuple[str, ProfilerUse]] = []

    def read(self) -> list[tuple[str, ProfilerUse]]:
        """Return all notes so far, each with the name of its node. Only new lines are read."""
        for path in probe_folder(self._run).glob("*.jsonl"):
            with contextlib.suppress(OSError, msgspec.MsgspecError), path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
                complete = data[: data.rfind(b"\n") + 1]
                self._read[path] = self._read.get(path, 0) + len(complete)
                node = path.stem.rsplit("-", 2)[0]
                for line in complete.splitlines():
                    if self._mark in line:
                        self._found.append((node, msgspec.json.decode(line, type=ProfilerUse)))
        return self._found
