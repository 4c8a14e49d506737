"""Reading what the probes of a run's Python processes said."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from teho.model.watched import Frame, Loader, Progress, Seen, WatchedProcess
from teho.store.layout import probe_folder

__all__ = ["processes_in", "watched_processes"]


def watched_processes(run: Path, problems: list[str]) -> list[WatchedProcess]:
    """Return the Python processes of a run, in the order of their beginning.

    Args:
        run: the run's directory.
        problems: gains a sentence for each file that does not read, and each probe that gave up.
    """
    return processes_in(probe_folder(run), problems)


def processes_in(folder: Path, problems: list[str]) -> list[WatchedProcess]:
    """Return those whose probes write into a folder, as `watched_processes` does.

    Args:
        folder: of a recording, or the spool of a program that runs.
        problems: as there.
    """
    found: list[WatchedProcess] = []
    paths: list[Path] = []
    with contextlib.suppress(FileNotFoundError):  # nothing was watched, or it has been taken home
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")
    for path in paths:
        try:
            found.append(_process(path, problems))
        except (
            OSError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            RecursionError,
        ) as error:
            problems.append(f"{path}: not what a probe writes: {error!r}")
    return sorted(found, key=lambda process: process.began_s)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    data = path.read_bytes()
    # The recorder may be in the midst of a line.
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        yield msgspec.json.decode(line, type=dict[str, Any])


def _process(path: Path, problems: list[str]) -> WatchedProcess:
    head: dict[str, Any] = {}
    frames: dict[int, Frame] = {}
    stacks: dict[str, tuple[Frame, ...]] = {}
    seen: dict[str, list[float]] = {}
    libraries: dict[str, dict[str, Any]] = {}
    loaders: dict[int, Loader] = {}
    progress: list[Progress] = []
    process: dict[str, Any] = {}
    phases: dict[str, float] = {}
    until_s = 0.0
    for line in _lines(path):
        if "probe" in line:
            head, until_s = line, line["began_s"]
        elif "frame" in line:
            frames[line["frame"]] = msgspec.convert(line["is"], Frame)
        elif "stack" in line:
            stacks[str(line["stack"])] = tuple(frames[number] for number in line["frames"])
        elif "seen" in line:
            until_s = line["until_s"]
            for number, figures in line["seen"].items():
                before = seen.setdefault(number, [0.0] * len(figures))
                seen[number] = [was + more for was, more in zip(before, figures, strict=True)]
        elif "library" in line:
            libraries[line["library"]] = line["facts"]
        elif "loader" in line:
            loader = msgspec.convert(line, Loader, strict=False)
            if before_it := loaders.get(line["loader"]):
                loader = msgspec.structs.replace(loader, given=before_it.given + loader.given)
            loaders[line["loader"]] = loader
        elif "steps" in line:
            progress.append(msgspec.convert(line, Progress, strict=False))
        elif "phases" in line:
            phases = line["phases"]
        elif "process" in line:
            most = max(line["process"].get("threads", 0), process.get("threads", 0))
            process |= line["process"] | ({"threads": most} if most else {})
        elif "failed" in line:
            problems.append(f"{path}: the probe saw less: {line['failed']}")
    # NODE-PID-STAMP.jsonl; a node's name may have dashes of its own.
    node = path.stem.rsplit("-", 2)[0]
    return WatchedProcess(
        node=node,
        pid=head["pid"],
        parent_pid=head["parent_pid"],
        python=head["python"],
        began_s=head["began_s"],
        until_s=until_s,
        stacks=tuple(
            Seen(frames=stacks.get(number, ()), wall_s=wall_s, cpu_s=cpu_s, held_s=held_s)
            for number, (_, wall_s, cpu_s, held_s) in seen.items()
        ),
        cores=tuple(process["cores"]) if "cores" in process else None,
        threads=process.get("threads"),
        wait_for_core_s=process.get("wait_for_core_s"),
        variables=process.get("variables", {}),
        libraries=libraries,
        loaders=tuple(loaders[number] for number in sorted(loaders)),
        progress=tuple(progress),
        phases=phases,
    )
