"""Finds runs by id, beginning of an id, name or directory, and lists them.

The descriptions of finished runs and their verdicts are in the index (`store/index_file.py`), so
that they are read only once.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import msgspec

from teho.config.settings import in_utf8
from teho.errors import RecordingError, RunNotFoundError
from teho.model.job import Submission
from teho.model.listed_run import Judged
from teho.model.run import Node, Run, RunState
from teho.patterns import lazy_pattern
from teho.store.index_file import Indexed, IndexFile, indexed
from teho.store.layout import is_ours, is_run_id, replace_file, run_file, runs_directory
from teho.store.read import read_run, run_state, unreadable

__all__ = [
    "change_tags",
    "content_stamp",
    "find_run",
    "list_runs",
    "newest_runs",
    "remove_run",
    "runs_of_job",
    "runs_of_job_id",
    "verdicts_of",
]

_CLOCKS_DIFFER = timedelta(minutes=2)
_JOB_ID = lazy_pattern(r"\d{1,15}([_.]\d{1,9})?", re.ASCII)
"""`4711`, or an array's task: `4711_3` (Slurm) or `4711.3` (Grid Engine)."""
_STAMP_LENGTH = len("20261120-101944")


def find_run(reference: str, home: Path) -> Path:
    """Return the directory of one run.

    Args:
        reference: an id, a job's id, a unique beginning of an id, a name, `last`, or a path.
        home: the directory of all recordings.

    Raises:
        RunNotFoundError: no run matches, or more than one does.
    """
    if reference in {".", ".."} or ("/" in reference and _may_exist(reference)):
        return _directory_of_run(Path(reference))
    runs = runs_directory(home)
    ids = _ids(runs)
    if not ids and not Path(reference).is_dir():
        raise RunNotFoundError(
            f"no run is recorded in {runs}", "", "`teho run -- COMMAND` records a run"
        )
    if reference == "last":
        return _newest(runs, ids)
    if reference in ids:
        return runs / reference
    if _JOB_ID.fullmatch(reference) and (job_runs := runs_of_job_id(home, reference)):
        return job_runs[-1]
    fitting = [run_id for run_id in ids if run_id.startswith(reference)]
    if len(fitting) != 1:
        named = [path.name for path, run in list_runs(home) if run and run.name == reference]
        # A name may be used for many runs; it means the newest of them.
        fitting = named[-1:] or fitting
    if len(fitting) == 1:
        return runs / fitting[0]
    if not fitting and Path(reference).is_dir():
        return _directory_of_run(Path(reference))
    if fitting:
        shown = ", ".join(fitting[:4]) + (", …" if len(fitting) > 4 else "")
        raise RunNotFoundError(
            f"the ids of {len(fitting)} runs begin with {reference!r}: {shown}",
            "a longer beginning that fits only one id",
            "type more characters of the id",
        )
    raise RunNotFoundError(
        f"{runs} has no run {reference!r}",
        "a run's id, the beginning of its id, its name, its directory, a job's id, or `last`",
        "`teho list` shows all runs",
    )


def _may_exist(path: str) -> bool:
    """Return whether a path exists, or is in a directory that this user cannot enter."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _newest(runs: Path, ids: list[str]) -> Path:
    """Return the run that began last. Ids contain the time only to the second."""
    second = ids[-1][:_STAMP_LENGTH]
    rivals = [runs / run_id for run_id in ids if run_id.startswith(second)]
    if len(rivals) == 1:
        return rivals[0]
    began = {path: run.started_at for path in rivals if (run := _description(path))}
    return max(began, key=began.__getitem__, default=rivals[-1])


def _directory_of_run(path: Path) -> Path:
    try:
        if not path.is_dir():
            raise RunNotFoundError(
                f"{path}: no such directory", "a run's directory", "`teho list` shows all runs"
            )
        if not run_file(path).exists():
            raise RunNotFoundError(
                f"{path} is not a run, because it has no run.json",
                "a directory that `teho run` wrote",
                "`teho show RUN --path` prints the directory of a run",
            )
        return in_utf8(path.resolve())
    except OSError as error:
        raise unreadable(path, path, error) from error


def _ids(runs: Path) -> list[str]:
    try:
        with os.scandir(runs) as entries:
            return sorted(entry.name for entry in entries if is_run_id(entry.name))
    except FileNotFoundError:
        return []
    except PermissionError as error:
        raise unreadable(runs, runs, error, "a directory that you can read") from error
    except OSError as error:
        raise RunNotFoundError(
            f"{runs}: {error.strerror}",
            "a directory that you can read",
            "set TEHO_HOME to such a directory",
        ) from error


def list_runs(home: Path) -> list[tuple[Path, Run | None]]:
    """Return every run's directory and description, oldest first; None if it is damaged."""
    return list(newest_runs(home))[::-1]


def newest_runs(home: Path) -> Iterator[tuple[Path, Run | None]]:
    """Yield every run's directory and description, newest first; None if it is damaged.

    Only the runs that the caller takes are read.
    """
    runs = runs_directory(home)
    ids = _ids(runs)
    file = IndexFile.open()
    index = file.home(runs)
    fresh: list[Indexed] = []
    try:
        for run_id in reversed(ids):
            directory = runs / run_id
            stamp = _stamp(directory)
            known = index.get(run_id)
            run: Run | None = None
            if known is not None and known[0] == stamp:
                with contextlib.suppress(ValueError):
                    run = msgspec.json.decode(known[1], type=Run)
            if run is None:
                run = _description(directory)
                if run is not None and run.end is not None:
                    fresh.append(indexed(directory, run, stamp))
            yield directory, run
    finally:
        index.update(fresh, gone=index.ids() - set(ids))
        file.close()


def runs_of_job(home: Path, submission: Submission) -> list[Path]:
    """Return the directories of the runs that were recorded in a job, oldest first.

    An array has the runs of all its tasks. Schedulers use their numbers again after some years,
    so a run that began before the job was submitted belongs to another job.
    """
    since = submission.submitted_at - _CLOCKS_DIFFER

    def is_of_job(run: Run) -> bool:
        return run.started_at >= since and any(
            node.allocation.scheduler == submission.scheduler
            and submission.number == _job_ids(node)[-1]
            for node in run.nodes
        )

    return [path for path, run in list_runs(home) if run and is_of_job(run)]


def runs_of_job_id(home: Path, job_id: str) -> list[Path]:
    """Return the directories of the runs that were recorded in a job, oldest first.

    The number of an array means all its tasks.
    """
    return [
        path
        for path, run in list_runs(home)
        if run and any(job_id in _job_ids(node) for node in run.nodes)
    ]


def _job_ids(node: Node) -> tuple[str, str]:
    """Return the id of a node's job, and without the number of an array's task."""
    job_id = node.allocation.job_id or ""
    return job_id, re.split("[_.]", job_id)[0]


def _description(directory: Path) -> Run | None:
    try:
        return read_run(directory)
    except RecordingError:
        return None


def _stamp(directory: Path) -> int:
    try:
        return run_file(directory).stat().st_mtime_ns
    except OSError:
        return 0


def verdicts_of(
    home: Path, directories: Iterable[Path], judge: str, find: Callable[[Path], Judged]
) -> list[Judged]:
    """Return the verdict of each run; a verdict is computed again only if the run has changed.

    Args:
        home: the directory of all recordings.
        directories: the runs. The verdict of a run that is not in `home` is not stored.
        judge: identifies what judges: another judge may have another verdict.
        find: computes the verdict of a run.
    """
    runs = runs_directory(home)
    file = IndexFile.open()
    index = file.home(runs)
    known = index.verdicts(judge)
    fresh: dict[str, tuple[int, Judged]] = {}
    found: list[Judged] = []
    try:
        for directory in directories:
            stamp = content_stamp(directory)
            stored = known.get(directory.name) if directory.parent == runs else None
            judged = stored[1] if stored and stored[0] == stamp else find(directory)
            if directory.parent == runs and stored != (stamp, judged):
                fresh[directory.name] = stamp, judged
            found.append(judged)
    finally:
        index.save_verdicts(judge, fresh)
        file.close()
    return found


def content_stamp(directory: Path) -> int:
    """Return the newest time of modification of a recording's description and folders, in ns."""
    return max(map(_modified_ns, (run_file(directory), *directory.glob("[!.]*"))))


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def remove_run(directory: Path) -> None:
    """Delete one recording.

    Raises:
        RecordingError: it cannot be deleted, or it has files that Teho did not write.
    """
    import shutil

    try:
        strange = sorted(path.name for path in directory.iterdir() if not is_ours(path.name))
        if strange:
            raise RecordingError(
                f"{directory} has files that Teho did not write: {', '.join(strange[:3])}",
                "only the files of a recording",
                "move them away first",
            )
        shutil.rmtree(directory)
    except OSError as error:
        raise RecordingError(
            f"{error.filename}: {error.strerror}", "a directory that you own"
        ) from error


def change_tags(
    directory: Path, added: Mapping[str, str], removed: Iterable[str] = ()
) -> dict[str, str]:
    """Change the tags of one recording, and return all its tags.

    Raises:
        RecordingError: the recording cannot be read or written, or the run has not ended.
    """
    run = read_run(directory)
    if run_state(run, directory) is RunState.RUNNING:
        raise RecordingError(
            f"{run.id} still runs; at its end, Teho would overwrite the tags",
            "a run that has ended",
            "`teho run --tag KEY=VALUE` tags a run at its start",
        )
    tags = {**run.tags, **added}
    for key in removed:
        tags.pop(key, None)
    path = run_file(directory)
    try:
        # Only `run.json`: the parts of nodes and tasks stay in their own files.
        content = msgspec.json.decode(path.read_bytes())
        content.pop("tags", None)
        replace_file(path, msgspec.json.encode(content | ({"tags": tags} if tags else {})))
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}", "a recording of your own") from error
    file = IndexFile.open()
    try:
        file.home(directory.parent).renew(directory.name)
    finally:
        file.close()
    return tags
