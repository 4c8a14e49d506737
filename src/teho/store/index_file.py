"""The index of all recordings: one SQLite file in the user's cache folder.

All data in it can be computed from the recordings. If the file is damaged, it is deleted and made
again. If SQLite cannot use it, for example because the file system has no locks or is full, a file
on this node replaces it. If this file cannot be used either, an index in memory replaces it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.config.settings import expanded
from teho.errors import InputError, RecordingError
from teho.model.listed_run import Judged
from teho.model.run import Run, RunState
from teho.process.parallel_map import parallel_map
from teho.process.private_folder import is_private, private_folder
from teho.store.layout import is_run_id, run_file
from teho.store.owner import user_name
from teho.store.read import read_run, run_state

__all__ = ["COLUMNS", "HomeIndex", "IndexFile", "Indexed", "indexed", "outcome_of"]

_SETTLED_S = 86_400.0
"""A run without an end that is older than this does not end any more."""
_SAME_TICK_NS = 2_000_000_000
"""Coarsest time stamp of a file system: a change in the same tick cannot be seen."""
_LOCKED = "locked"
"""In SQLite's message if another process is writing."""
_BATCH = 2_000
"""Runs that are read before they are written to the index."""
_VERDICT_COLUMNS = tuple(Judged.__struct_fields__)
COLUMNS = (
    "outcome", "began_s", "elapsed_s", "name", "command", "tags", "user", "host", "cluster",
    "partition", "account", "gpu", "gpus", "nodes", "tasks", "job_id", "revision", "program",
)  # fmt: skip
"""Columns of a run that can be filtered and sorted by."""
_SCHEMA = f"""
create table if not exists home (id integer primary key, runs text unique, listed_ns integer);
create table if not exists run (
    home integer, id text, stamp integer, is_settled integer,
    outcome text, began_s real, elapsed_s real, name text, command text, tags text, user text,
    host text, cluster text, partition text, account text, gpu text, gpus integer, nodes integer,
    tasks integer, job_id text, revision text, program text, searched text,
    primary key (home, id)) without rowid;
create index if not exists run_began on run (home, began_s, id);
create index if not exists run_command on run (command, began_s);
create index if not exists run_settled on run (home, is_settled);
create table if not exists description (
    home integer, id text, content blob, primary key (home, id)) without rowid;
create table if not exists judge (id integer primary key, name text unique);
create table if not exists verdict (
    home integer, id text, judge integer, stamp integer, {", ".join(_VERDICT_COLUMNS)},
    primary key (home, id, judge)) without rowid;
"""


_CONTENT = "tags are searched as KEY=VALUE"
"""Is changed if the same tables have another content, so that the index is made again."""
_VERSION = zlib.crc32(f"{_SCHEMA}{_CONTENT}".encode()) & 0x7FFF_FFFF or 1
"""Identifies the tables and their content. SQLite gives a new file the version 0."""


class IndexFile:
    """The index of all recordings of all folders that this user has read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.failures = 0
        """Number of writes that failed, also because another process was writing."""
        self.problem = ""
        """Why the file cannot be written, such as a full disk; empty if it can."""

    @classmethod
    def open(cls) -> IndexFile:
        """Open the file; a new one if it is damaged, one on this node if that fails too."""
        cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        with contextlib.suppress(OSError, sqlite3.Error, InputError):
            folder = expanded(cache_home) / "teho"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls._in(folder)
        return cls.on_this_node()

    @classmethod
    def on_this_node(cls) -> IndexFile:
        """Open a file in the node's folder for temporary files; one in memory if that fails."""
        with contextlib.suppress(OSError, sqlite3.Error):
            folder = private_folder()
            if is_private(folder):
                return cls._in(folder)
        return cls.in_memory()

    @classmethod
    def in_memory(cls) -> IndexFile:
        """Make an index that ends with this process."""
        return cls._at(":memory:")

    @classmethod
    def _in(cls, folder: Path) -> IndexFile:
        path = folder / "index.sqlite"
        try:
            return cls._at(str(path))
        except sqlite3.DatabaseError as error:
            if _LOCKED in str(error):
                raise  # another process uses this file
            path.unlink(missing_ok=True)
            return cls._at(str(path))

    @classmethod
    def _at(cls, path: str) -> IndexFile:
        if path != ":memory:":
            # Created with its mode: it has the commands of all runs.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(path, timeout=1.0, check_same_thread=False)
        try:
            # The content can be computed again, so a lost write does no harm.
            connection.execute("pragma synchronous = off")
            ((version,),) = connection.execute("pragma user_version").fetchall()
            if version not in {0, _VERSION}:
                raise sqlite3.DatabaseError("another version of Teho made this index")
            if version == 0:
                connection.executescript(f"{_SCHEMA} pragma user_version = {_VERSION};")
            for table in ("home", "run", "description", "judge", "verdict"):
                connection.execute(f"select * from {table} limit 1").fetchall()  # noqa: S608
        except sqlite3.Error:
            connection.close()
            raise
        return cls(connection)

    def home(self, runs: Path, *, check: Callable[[Path], bool] | None = None) -> HomeIndex:
        """Return the part of the index with the recordings of one folder.

        Args:
            runs: the folder.
            check: says whether a recording may be read; None: all may be read.
        """
        with self.writing() as connection:
            connection.execute("insert or ignore into home (runs) values (?)", (str(runs),))
        found = self.rows("select id from home where runs = ?", str(runs))
        if not found:
            self.problem = self.problem or "another process is writing"
        return HomeIndex(self, found[0][0] if found else -1, runs, check)

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write several rows, or none if that fails: the recordings still have the data."""
        try:
            with self.connection as connection:
                yield connection
        except sqlite3.Error as error:
            self.failures += 1
            if _LOCKED not in str(error):
                self.problem = str(error)

    def judge(self, name: str) -> int:
        """Return the number of what judges runs; different judges have different verdicts."""
        with self.writing() as connection:
            connection.execute("insert or ignore into judge (name) values (?)", (name,))
        found = self.rows("select id from judge where name = ?", name)
        return int(found[0][0]) if found else -1

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return the answer to a query; empty if the file fails."""
        try:
            return self.connection.execute(query, values).fetchall()
        except sqlite3.Error:
            return []

    def close(self) -> None:
        """Close the file."""
        self.connection.close()


class HomeIndex:
    """The recordings of one folder in the index."""

    def __init__(
        self,
        file: IndexFile,
        number: int,
        runs: Path,
        check: Callable[[Path], bool] | None = None,
    ) -> None:
        self._file = file
        self._check = check
        self.number = number
        """The folder's number in the index."""
        self._runs = runs

    def ids(self) -> set[str]:
        """Return the indexed ids."""
        return {run_id for (run_id,) in self._rows("select id from run where home = ?")}

    def get(self, run_id: str) -> tuple[int, bytes] | None:
        """Return the stamp and description of a run that has ended; None if it is not indexed."""
        query = (
            "select run.stamp, content from run join description using (home, id)"
            " where home = ? and id = ?"
        )
        return next(iter(self._rows(query, run_id)), None)

    def update(self, fresh: Iterable[Indexed], gone: Iterable[str] = ()) -> None:
        """Save new descriptions, and delete the descriptions of deleted runs."""
        fresh, number = list(fresh), self.number
        if number < 0:
            return  # without a number, the runs of several folders would be mixed
        with self._file.writing() as connection:
            marks = ", ".join("?" * (5 + len(COLUMNS)))
            connection.executemany(
                f"insert or replace into run values ({marks})",  # noqa: S608 - only marks
                [
                    (number, one.id, one.stamp, one.is_settled, *one.columns, one.searched)
                    for one in fresh
                ],
            )
            connection.executemany(
                "insert or replace into description values (?, ?, ?)",
                [(number, one.id, one.description) for one in fresh if one.description],
            )
            for table in ("run", "description", "verdict"):
                connection.executemany(
                    f"delete from {table} where home = ? and id = ?",  # noqa: S608 - our own names
                    [(number, run_id) for run_id in gone],
                )

    def renew(self, run_id: str) -> None:
        """Read one recording again, because its description was changed."""
        self.update([index_run(self._runs, self._check, run_id)])

    def renew_changed(self, run_ids: Iterable[str]) -> None:
        """Read again those recordings whose description was changed, perhaps on another machine."""
        query = "select stamp from run where home = ? and id = ?"
        for run_id in run_ids:
            stamp = 0
            with contextlib.suppress(OSError):
                stamp = run_file(self._runs / run_id).stat().st_mtime_ns
            if self._rows(query, run_id) not in ([], [(stamp,)]):
                self.renew(run_id)

    def refresh(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Read the recordings that are new or that had not ended, and forget deleted ones.

        The folder is listed only if its time of modification has changed.

        Args:
            progress: is called with the number of runs that were read, and of all to read.
        """
        try:
            changed_ns = self._runs.stat().st_mtime_ns
        except OSError:
            changed_ns = 0
        failures = self._file.failures
        ((listed_ns,),) = self._rows("select listed_ns from home where id = ?") or [(None,)]
        new: list[str] = []
        if listed_ns is None or listed_ns != changed_ns:
            began_ns = time.time_ns()
            present, known = _ids(self._runs), self.ids()
            self.update((), known - present)
            new = sorted(present - known)
        unsettled = self._rows("select id from run where home = ? and is_settled = 0")
        wanted = [*(run_id for (run_id,) in unsettled), *new]
        for first in range(0, len(wanted), _BATCH):
            part = wanted[first : first + _BATCH]
            self.update(parallel_map(partial(index_run, self._runs, self._check), part))
            if progress:
                progress(first + len(part), len(wanted))
        # After a failed write, the next refresh must list the folder again.
        if (new or listed_ns != changed_ns) and failures == self._file.failures:
            # A run that appears in the tick of the listing would not change the time again.
            is_sure = changed_ns < began_ns - _SAME_TICK_NS
            with self._file.writing() as connection:
                connection.execute(
                    "update home set listed_ns = ? where id = ?",
                    (changed_ns if is_sure else None, self.number),
                )

    def verdicts(self, judge: str) -> dict[str, tuple[int, Judged]]:
        """Return the stamp and verdict of each run that this judge has judged."""
        names = ", ".join(_VERDICT_COLUMNS)
        query = f"select id, stamp, {names} from verdict where home = ? and judge = ?"  # noqa: S608
        return {
            run_id: (stamp, Judged(**dict(zip(_VERDICT_COLUMNS, values, strict=True))))
            for run_id, stamp, *values in self._rows(query, self._file.judge(judge))
        }

    def save_verdicts(self, judge: str, found: Mapping[str, tuple[int, Judged]]) -> None:
        """Save the stamp and verdict of runs."""
        marks = ", ".join("?" * (4 + len(_VERDICT_COLUMNS)))
        number = self._file.judge(judge)
        if number < 0 or self.number < 0:
            return
        with self._file.writing() as connection:
            connection.executemany(
                f"insert or replace into verdict values ({marks})",  # noqa: S608 - only marks
                [
                    (self.number, run_id, number, stamp, *msgspec.structs.astuple(judged))
                    for run_id, (stamp, judged) in found.items()
                ],
            )

    def forget_verdicts(self, judge: str) -> None:
        """Delete the verdicts of earlier versions of a judge: their names begin like its name."""
        family = judge.partition(" ")[0]
        earlier = "select id from judge where name <> ? and substr(name, 1, ?) = ?"
        with self._file.writing() as connection:
            connection.execute(
                f"delete from verdict where home = ? and judge in ({earlier})",  # noqa: S608
                (self.number, judge, len(family) + 1, f"{family} "),
            )

    def _rows(self, query: str, *values: str | int) -> list[Any]:
        return self._file.rows(query, self.number, *values)


class Indexed(NamedTuple):
    """One run as the index stores it."""

    id: str
    stamp: int
    """Time of modification of `run.json` in ns."""
    is_settled: bool
    """Whether it will not change by itself any more."""
    columns: tuple[Any, ...]
    description: bytes
    """JSON of the whole `Run`; empty if the run has not ended."""

    @property
    def searched(self) -> str:
        """What a search for words reads, in lower case."""
        known = dict(zip(COLUMNS, self.columns, strict=True))
        tags = (f"{key}={value}" for key, value in json.loads(known["tags"]).items())
        names = ("name", "command", "job_id")
        return _sound("\n".join([self.id, *(known[name] for name in names), *tags])).lower()


def index_run(runs: Path, check: Callable[[Path], bool] | None, run_id: str) -> Indexed:
    """Read one recording for the index; a damaged one, or one that fails a check, as damaged."""
    directory = runs / run_id
    stamp, user = 0, ""
    with contextlib.suppress(OSError):
        status = run_file(directory).stat()
        stamp, user = status.st_mtime_ns, user_name(status.st_uid)
    try:
        run = read_run(directory) if check is None or check(directory) else None
    except RecordingError:
        run = None
    if run is None:
        columns = ("damaged", 0.0, None, "", "", "{}", user, "", "", "", "", "", 0, 0, 0, "",
                   "", "")  # fmt: skip
        # It stays as it is until its description changes: it is read again only on request.
        return Indexed(run_id, stamp, True, columns, b"")
    return indexed(directory, run, stamp, user)


def indexed(directory: Path, run: Run, stamp: int, user: str | None = None) -> Indexed:
    """Return a run as the index stores it.

    Args:
        directory: the recording.
        run: its description.
        stamp: time of modification of `run.json` in ns.
        user: its owner, if known.
    """
    if user is None:
        user = ""
        with contextlib.suppress(OSError):
            user = user_name(run_file(directory).stat().st_uid)
    outcome = outcome_of(run, directory)
    age_s = time.time() - run.started_at.timestamp()
    is_settled = run.end is not None or (outcome == "interrupted" and age_s > _SETTLED_S)
    job = next((node.allocation for node in run.nodes if node.allocation.job_id), None)
    models = sorted({device.name for node in run.nodes for device in node.devices})
    columns = (
        outcome,
        run.started_at.timestamp(),
        run.end.elapsed_s if run.end else None,
        run.name,
        shlex.join(run.command),
        json.dumps(run.tags, ensure_ascii=False),
        user,
        run.host,
        (job.cluster or "") if job else "",
        (job.partition or "") if job else "",
        (job.account or "") if job else "",
        ", ".join(models),
        sum(max(node.allocation.gpus_held or 0, len(node.devices)) for node in run.nodes),
        max(len(run.nodes), len(run.step.hosts) if run.step else 0),
        run.step.task_count if run.step else 1,
        (job.job_id or "") if job else "",
        run.versions.get("commit", ""),
        run.versions.get("program file", ""),
    )
    sound = tuple(_sound(one) if isinstance(one, str) else one for one in columns)
    description = msgspec.json.encode(run) if run.end is not None else b""
    return Indexed(directory.name, stamp, is_settled, sound, description)


def _sound(text: str) -> str:
    """Return a text as UTF-8, which SQLite needs: another process may have written other bytes."""
    return text.encode(errors="backslashreplace").decode()


def outcome_of(run: Run, directory: Path) -> str:
    """Return whether a run continues, ended well, failed, was interrupted, or was imported."""
    if run.imported:
        return "imported"  # a log does not say how its program ended
    end = run.end
    if end is None:
        state = run_state(run, directory)
        return "running" if state is RunState.RUNNING else "interrupted"
    if end.exit_code == 0 or end.on_purpose:
        return "ok"
    if end.exit_code is None and end.signal is None and end.job_state in {"", "running"}:
        return "interrupted"  # a recording from outside that ended before its job
    return "ok" if end.job_state == "completed" else "failed"


def _ids(runs: Path) -> set[str]:
    try:
        with os.scandir(runs) as entries:
            return {entry.name for entry in entries if is_run_id(entry.name)}
    except OSError:
        return set()
