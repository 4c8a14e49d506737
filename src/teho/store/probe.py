"""Reads what the probes of a run's Python processes wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from teho.config.privacy import masked_text
from teho.model.profiling import ProfilerUse
from teho.model.stack import Frame, Seen, State
from teho.model.watched import Death, Loader, Progress, Raised, Stayed, WatchedProcess
from teho.store.layout import probe_folder
from teho.store.slices import Slice, at_end, before, in_parts, independent_samples, totals
from teho.store.stacks import OutsideStacks, is_stack_file, lines_of, read_stacks

__all__ = ["processes_in", "watched_processes"]

_BUSY = 0.5
"""A thread that uses less than this share of a core's time waits."""


def watched_processes(run: Path, problems: list[str]) -> list[WatchedProcess]:
    """Return the Python processes of a run, ordered by their start.

    Args:
        run: the run's directory.
        problems: gets a sentence for each file that cannot be read, and each probe that failed.
    """
    return processes_in(probe_folder(run), problems)


def processes_in(folder: Path, problems: list[str]) -> list[WatchedProcess]:
    """Return the Python processes whose probes write into a folder, ordered by their start.

    Args:
        folder: in a recording, or the spool of a program that runs.
        problems: as for `watched_processes`.
    """
    found: list[WatchedProcess] = []
    paths: list[Path] = []
    with contextlib.suppress(FileNotFoundError):  # no probe wrote, or the spool is removed
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")
    outside: dict[str, OutsideStacks] = {}
    for path in filter(is_stack_file, paths):
        with _damage_in(path, problems, "a stack sampler"):
            outside |= read_stacks(path, problems)
    for path in paths:
        if not is_stack_file(path):
            with _damage_in(path, problems, "a probe"):
                found.append(_process(path, outside.get(path.stem), problems))
    return sorted(found, key=lambda process: process.began_s)


@contextlib.contextmanager
def _damage_in(path: Path, problems: list[str], writer: str) -> Iterator[None]:
    """Add a sentence to `problems` if a file is damaged."""
    try:
        yield
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        problems.append(f"{path} does not contain the data that {writer} writes: {error!r}")


def _process(path: Path, outside: OutsideStacks | None, problems: list[str]) -> WatchedProcess:
    head: dict[str, Any] = {}
    frames: dict[int, Frame] = {}
    stacks: dict[str, tuple[Frame, ...]] = {}
    slices: list[Slice] = []
    libraries: dict[str, dict[str, Any]] = {}
    loaders: dict[int, Loader] = {}
    progress: list[Progress] = []
    process: dict[str, Any] = {}
    profiled: list[ProfilerUse] = []
    phases: dict[str, float] = {}
    raised: dict[str, Any] | None = None
    texts: dict[tuple[str, int], str] = {}
    until_s = 0.0
    for line in lines_of(path):
        if "probe" in line:
            head, until_s = line, line["began_s"]
        elif "frame" in line:
            frames[line["frame"]] = msgspec.convert(line["is"][:4], Frame)
        elif "stack" in line:
            stacks[str(line["stack"])] = tuple(frames[number] for number in line["frames"])
        elif "seen" in line:
            until_s = line["until_s"]
            slices.append(_inside_slice(line, stacks))
        elif "end_s" in line:
            until_s = max(until_s, line["end_s"])
        elif "library" in line:
            libraries[line["library"]] = line["facts"]
        elif "loader" in line:
            loaders[line["loader"]] = _loader(line, loaders.get(line["loader"]))
        elif "profile" in line:  # it may have the key `steps` too
            profiled.append(msgspec.convert(line, ProfilerUse))
        elif "steps" in line:
            progress.append(msgspec.convert(line, Progress, strict=False))
        elif "phases" in line:
            phases = line["phases"]
        elif "process" in line:
            most = max(line["process"].get("threads", 0), process.get("threads", 0))
            process |= line["process"] | ({"threads": most} if most else {})
        elif "text" in line:
            texts[line["of"][0], line["of"][1]] = line["text"]
        elif "exception" in line:
            raised = line
        elif "failed" in line:
            problems.append(f"{path}: the probe missed some data: {line['failed']}")
    noted_s = until_s
    if outside is not None and outside.slices:
        outside.set_texts(texts)
        slices = [
            *(one for one in slices if one.until_s <= outside.slices[0].from_s), *outside.slices
        ]  # fmt: skip
        until_s = max(until_s, outside.slices[-1].until_s)
    began_s = head["began_s"]
    end = at_end(slices, began_s)
    return WatchedProcess(
        node=path.stem.rsplit("-", 2)[0],  # NODE-PID-STAMP; a node's name may contain dashes
        pid=head["pid"],
        parent_pid=head["parent_pid"],
        python=head["python"],
        began_s=began_s,
        until_s=until_s,
        stacks=totals(slices),
        set_up=before(slices, _first_step_s(progress)),
        parts=in_parts(slices, began_s, until_s),
        at_end=end.seen,
        at_end_s=end.until_s - end.from_s,
        at_end_until_s=end.until_s,
        noted_s=noted_s,
        stayed=_stayed(outside) if outside is not None else None,
        death=_death(head["pid"], outside.ended) if outside is not None else None,
        independent_samples=independent_samples(slices),
        from_outside=outside is not None and bool(outside.slices),
        why_inside=outside.failure if outside is not None else "",
        cores=tuple(process["cores"]) if "cores" in process else None,
        threads=process.get("threads"),
        wait_for_core_s=process.get("wait_for_core_s"),
        stdin_is_terminal=process.get("stdin_is_terminal"),
        variables=process.get("variables", {}),
        libraries=libraries,
        loaders=tuple(loaders[number] for number in sorted(loaders)),
        progress=tuple(progress),
        profiled=tuple(profiled),
        phases=phases,
        raised=_raised(raised, until_s) if raised else None,
        column_filters=tuple(outside.column_filters) if outside is not None else (),
        costly_options=tuple(outside.costly_options) if outside is not None else (),
        missing_indexes=tuple(outside.missing_indexes) if outside is not None else (),
        **({name: tuple(calls) for name, calls in outside.in_loops.items()} if outside else {}),
    )


def _loader(line: Mapping[str, Any], earlier: Loader | None) -> Loader:
    """Read the newest line about a loader; it has only the batches since the line before."""
    loader = msgspec.convert(line, Loader, strict=False)
    given = earlier.given if earlier else ()
    return msgspec.structs.replace(loader, given=given + loader.given)


def _raised(line: dict[str, Any], at_s: float) -> Raised:
    at = msgspec.convert(line["at"][:4], Frame) if line["at"] else None
    return Raised(text=masked_text(line["exception"]), at=at, at_s=at_s)


def _stayed(outside: OutsideStacks) -> Stayed | None:
    """Return what a process waited for in the line in which it stays; None if it has continued."""
    if not outside.stays:
        return None
    since_s, at_s = outside.stays["since_s"], outside.stays["at_s"]
    dead = tuple(Death(pid=pid, at_s=at_s, status=how) for pid, how in outside.stays["dead"])
    blocked_on = outside.stays["blocked_on"]
    return Stayed(
        since_s=since_s, at_s=at_s, dead=dead, others=outside.others, blocked_on=blocked_on
    )


def _death(pid: int, line: dict[str, Any] | None) -> Death | None:
    return Death(pid=pid, at_s=line["ended_s"], status=line["status"]) if line else None


def _first_step_s(progress: Sequence[Progress]) -> float | None:
    """Return when the first step began, if it took as long as the later ones; None: no steps."""
    if not progress:
        return None
    pace = progress[-1].steps_per_s
    return progress[-1].first_s - (1 / pace if pace else 0.0)


def _inside_slice(line: dict[str, Any], stacks: Mapping[str, tuple[Frame, ...]]) -> Slice:
    """Read the samples of a probe's own thread; the CPU time shows the state of the program."""
    seen = []
    for number, (samples, wall_s, cpu_s, held_s) in line["seen"].items():
        if cpu_s < _BUSY * wall_s:
            state = State.WAITING
        else:
            state = State.PYTHON if 2 * held_s > wall_s else State.NATIVE
        seen.append(
            Seen(frames=stacks.get(number, ()), state=state, samples=int(samples), wall_s=wall_s)
        )
    return Slice(line["from_s"], line["until_s"], tuple(seen))
