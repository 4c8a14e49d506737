"""Reads a recording: complete or cut off, sealed or still growing."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from teho.errors import DamagedError, NewerFormatError, UnreadableError
from teho.model.live import LiveSample
from teho.model.run import FORMAT_VERSION, End, Node, Run, RunState, Task
from teho.store.layout import NODES, TASKS, live_parts, run_file, sealed_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "NodeRows",
    "in_order",
    "read_part",
    "read_run",
    "rows_of_node",
    "run_state",
    "samples_of_node",
    "supervisor_stamp",
    "unreadable",
    "with_parts",
    "with_places",
]

_Noun = TypeVar("_Noun", Node, Task)

_DAMAGE = (ValueError, RecursionError)
"""Raised for a damaged file: msgspec's errors, bytes that are not UTF-8, too many brackets."""
_SILENT_S = 90.0
"""A recorder writes at least every 10 s. A file system may show this to other nodes later."""
_TRIES = 20
"""A stream that disappears after it was listed was just packed or sealed. On a busy machine, many
packings may end while one reader tries again."""


def read_run(directory: Path) -> Run:
    """Read the description of a run, of its nodes and of its tasks.

    Raises:
        DamagedError: `run.json` cannot be read.
        NewerFormatError: a newer version of Teho wrote it.
        UnreadableError: the user has no permission.
    """
    path = run_file(directory)
    try:
        content = path.read_bytes()
    except PermissionError as error:
        raise unreadable(path, directory, error) from error
    except OSError as error:
        raise DamagedError(
            f"{path}: {error.strerror}",
            "a run's directory with a run.json",
            "`teho list` shows all runs",
        ) from error
    try:
        version = msgspec.json.decode(content, type=_Versioned).format
        if version > FORMAT_VERSION:
            raise NewerFormatError(
                f"{path} is in format {version}, which is too new for this version of Teho",
                f"format {FORMAT_VERSION} or older",
                "`pip install --upgrade teho`",
            )
        run = msgspec.json.decode(content, type=Run)
    except _DAMAGE as error:
        raise DamagedError(
            f"{path}: {error}",
            "the JSON that `teho run` writes",
            "read the samples with any Parquet or Arrow reader: the samples may still be complete",
        ) from error
    return with_parts(run, directory)


def unreadable(
    path: Path, directory: Path, error: OSError, expected: str = "a run that you can read"
) -> UnreadableError:
    """Return an error with what to ask the owner for: Teho opens recordings only to its user.

    Args:
        path: the file or directory that this user may not read.
        directory: the recording.
        error: the kernel's answer.
        expected: what the user should give instead.
    """
    # Teho makes `HOME/runs` and `HOME` too, and closes all three.
    directory = directory.absolute()
    above, run = (shlex.quote(str(path)) for path in (directory.parent, directory))
    home = shlex.quote(str(directory.parent.parent))
    return UnreadableError(
        f"{path}: {error.strerror}",
        expected,
        f"ask its owner to run `chmod go+x {home} {above} && chmod -R go+rX {run}`",
    )


def with_parts(run: Run, directory: Path) -> Run:
    """Return a run's description with all its nodes, and all tasks of a step.

    Raises:
        DamagedError: the description of a node or a task cannot be read.
    """
    run = msgspec.structs.replace(run, nodes=tuple(_read_all(directory / NODES, Node)))
    if not run.has_tasks:
        return run
    tasks = sorted(_read_all(directory / TASKS, Task), key=lambda task: task.rank)
    return msgspec.structs.replace(run, tasks=tuple(tasks), end=_end_of_all(run, tasks))


def _end_of_all(run: Run, tasks: Sequence[Task]) -> End | None:
    """Return the end of a step: the time of its last task, the status of the first that failed."""
    ends = [(run.moment_s(task.node, task.end.at), task.end) for task in tasks if task.end]
    if run.step is None or len(ends) < run.step.task_count:
        return None
    failed = [(moment_s, end) for moment_s, end in ends if end.exit_code != 0]
    _, deciding = min(failed or ends, key=itemgetter(0))
    last_s = max(0.0, *(moment_s for moment_s, _ in ends))
    cpu_s = [end.cpu_s for _, end in ends if end.cpu_s is not None]
    peaks = [end.peak_process_bytes for _, end in ends if end.peak_process_bytes is not None]
    return End(
        at=run.started_at + timedelta(seconds=last_s),
        elapsed_s=last_s,
        exit_code=deciding.exit_code,
        signal=deciding.signal,
        cpu_s=sum(cpu_s) if len(cpu_s) == len(ends) else None,
        peak_process_bytes=max(peaks, default=None),
    )


class _Versioned(msgspec.Struct):
    format: int


def _read_all(directory: Path, noun: type[_Noun]) -> Iterator[_Noun]:
    for path in sorted(directory.glob("*.json")):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=noun)
        except PermissionError as error:
            raise unreadable(path, directory.parent, error) from error
        except (OSError, *_DAMAGE) as error:
            raise DamagedError(
                f"{path}: {error}", "the JSON that `teho run` writes", "move that file away"
            ) from error


def supervisor_stamp(pid: int) -> str:
    """Return the start of a process in ticks: a later process with the same pid has another."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def run_state(run: Run, directory: Path) -> RunState:
    """Return whether a run is finished, running, or was interrupted."""
    if run.end is not None:
        return RunState.FINISHED
    if not run.has_tasks and run.host == os.uname().nodename and run.supervisor_pid is not None:
        stamp = run.supervisor_stamp
        is_alive = stamp and stamp == supervisor_stamp(run.supervisor_pid)
        return RunState.RUNNING if is_alive else RunState.INTERRUPTED
    if run.step is not None and run.nodes and all(node.sealed for node in run.nodes):
        # All recorders have ended. Tasks without an end were killed.
        return RunState.INTERRUPTED
    newest = max(_touched_s(directory), default=run.started_at.timestamp())
    silent_s = time.time() - newest
    return RunState.RUNNING if silent_s < _SILENT_S + run.period_s else RunState.INTERRUPTED


def _touched_s(directory: Path) -> Iterator[float]:
    """Yield the time at which a recorder last wrote each of its files, in s since 1970."""
    for part in ("live", "nodes"):
        for path in (directory / part).glob("*"):
            with contextlib.suppress(FileNotFoundError):  # it was just packed or replaced
                yield path.stat().st_mtime


def read_part(
    path: Path, columns: Sequence[str] | None = None, kind: str | None = None
) -> tuple[pa.Table, str | None]:
    """Read one file of rows: `(table, problem)`.

    If the end of a stream is incomplete, its complete batches are returned, and `problem` is a
    sentence about this.

    Args:
        path: an Arrow stream or a Parquet file.
        columns: only these; None: all.
        kind: only rows of this kind, `node` or `gpu`; None: all.

    Raises:
        OSError: the file cannot be opened.
        DamagedError: it is not a file of rows.
    """
    import pyarrow as pa

    if path.suffix == ".parquet":
        try:
            table, problem = _read_parquet(path, columns, kind), None
        except pa.ArrowInvalid as error:
            raise DamagedError(
                f"{path}: {_first_line(error)}", "a Parquet file", "move that file away"
            ) from error
    else:
        table, problem = _read_stream(path, columns, kind)
    for name in set(columns or ()) - set(table.column_names):
        # An older version of Teho wrote the file, without this metric.
        from teho.store.schema import ROW_SCHEMA

        field = ROW_SCHEMA.field(name)
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table, problem


def _read_parquet(path: Path, columns: Sequence[str] | None, kind: str | None) -> pa.Table:
    import pyarrow.parquet as pq

    # ParquetDataset and read_table would import the dataset layer, which takes 100 ms.
    file = pq.ParquetFile(path)
    groups, mixed = _groups_of(file, kind)
    there = columns
    if columns is not None:
        names = set(file.schema_arrow.names)
        there = [name for name in columns if name in names]
    with_kind = [*there, "kind"] if mixed and there is not None else there
    # Callers that read many nodes use threads; a second pool of threads would slow them.
    table = file.read_row_groups(groups, columns=with_kind, use_threads=False)
    table = _only(table, kind) if mixed else table
    return table.select(there) if with_kind is not there else table


def _groups_of(file: Any, kind: str | None) -> tuple[list[int], bool]:
    """Return the row groups with rows of a kind, and whether any has rows of other kinds too."""
    every = range(file.num_row_groups)
    if kind is None:
        return list(every), False
    # All columns before this one are flat, so its number is the same in the footer.
    place = file.schema_arrow.get_field_index("kind")
    found = [file.metadata.row_group(number).column(place).statistics for number in every]
    groups = [n for n in every if found[n] is None or found[n].min <= kind <= found[n].max]
    mixed = any(found[n] is None or found[n].min != found[n].max for n in groups)
    return groups, mixed


def _only(table: pa.Table, kind: str | None) -> pa.Table:
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["kind"], kind)) if kind and table.num_rows else table


def _read_stream(
    path: Path, columns: Sequence[str] | None, kind: str | None
) -> tuple[pa.Table, str | None]:
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    problem = None
    with pa.OSFile(str(path), "rb") as file:
        if file.size() == 0:
            return _empty(), f"{path} is empty: the run ended before the first samples were written"
        try:
            reader = pa.ipc.open_stream(file)
            if columns is not None:
                # The other columns of a batch are then not decoded.
                wanted = {*columns, "kind"}
                places = [place for place, name in enumerate(reader.schema.names) if name in wanted]
                file.seek(0)
                reader = pa.ipc.open_stream(
                    file, options=pa.ipc.IpcReadOptions(included_fields=places)
                )
            schema = reader.schema
            while True:
                batches.append(reader.read_next_batch())
        except StopIteration:
            pass
        except (pa.ArrowInvalid, OSError) as error:
            if not batches and file.size() > _HEADER_BYTES:
                raise DamagedError(
                    f"{path}: {_first_line(error)}", "an Arrow stream", "move that file away"
                ) from error
            problem = f"{path} is truncated; Teho uses only its {len(batches)} complete batches"
    table = _only(pa.Table.from_batches(batches, schema) if batches else _empty(), kind)
    if columns is not None:
        names = set(table.column_names)
        table = table.select([name for name in columns if name in names])
    return table, problem


_HEADER_BYTES = 64 * 1024
"""A shorter stream may be cut off in its header. A longer file without a batch is not a stream."""


def _empty() -> pa.Table:
    from teho.store.schema import ROW_SCHEMA

    return ROW_SCHEMA.empty_table()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["it cannot be read"])[0]


class NodeRows(NamedTuple):
    """One node's rows of one kind, ordered by device and time."""

    table: pa.Table
    places: dict[str, slice]
    """Device id -> its rows in the table; `node` is the host."""

    def of(self, device: str) -> pa.Table:
        """Return the rows of one device."""
        place = self.places[device]
        return self.table.slice(place.start, place.stop - place.start)


def rows_of_node(
    directory: Path, node: str, kind: str, columns: Sequence[str], problems: list[str]
) -> NodeRows | None:
    """Read some columns of one node's rows; None without rows.

    If a part of them cannot be read, the other rows are returned.

    Args:
        directory: the run's.
        node: the node's name.
        kind: `node` for the host's rows, `gpu` for the rows of its GPUs.
        columns: which to read.
        problems: gets a sentence for each file that cannot be read completely.
    """
    import pyarrow as pa

    wanted = [*columns, *sorted({"device", "elapsed_s"} - set(columns))]
    sealed = sealed_file(directory, node)
    for _ in range(_TRIES):
        paths = [sealed] if sealed.exists() else live_parts(directory, node)
        tables, wrong, vanished = _read_parts(paths, wanted, kind)
        if not vanished:
            break
    problems.extend(problem for problem in wrong if problem not in problems)
    if not tables:
        return None
    table = pa.concat_tables(tables, promote_options="default")
    return with_places(table if paths == [sealed] else in_order(table))


def samples_of_node(directory: Path, node: str, count: int) -> list[LiveSample]:
    """Return the newest rows of a node, those of one moment as one sample, in the order of time.

    A file that cannot be read has no rows here; the report names it.

    Args:
        directory: the recording.
        node: name of the node.
        count: number of samples.
    """
    sealed = sealed_file(directory, node)
    paths = [sealed] if sealed.exists() else live_parts(directory, node)
    tables, _, _ = _read_parts(paths[-2:], None, None)
    found: dict[float, list[Mapping[str, Any]]] = {}
    for table in tables:
        # Not the time: its conversion would import pandas. `elapsed_s` says the same.
        values = table.drop_columns(["time", "node"])
        first = sorted(set(values["elapsed_s"].to_pylist()))[-count:][:1]
        for row in _from(values, first[0]).to_pylist() if first else []:
            known = {name: value for name, value in row.items() if value is not None}
            found.setdefault(row["elapsed_s"], []).append(known)
    return [
        LiveSample(node=node, elapsed_s=moment, rows=found[moment])
        for moment in sorted(found)[-count:]
    ]


def _from(table: pa.Table, first_s: float) -> Any:
    import pyarrow.compute as pc

    return table.filter(pc.greater_equal(table["elapsed_s"], first_s))


def with_places(table: pa.Table) -> NodeRows | None:
    """Return ordered rows with the place of each device; None without rows."""
    import pyarrow.compute as pc

    if table.num_rows == 0:
        return None
    table = table.combine_chunks()
    runs = pc.run_end_encode(table["device"].chunk(0))
    ends = runs.run_ends.to_pylist()
    places = [slice(begin, end) for begin, end in pairwise([0, *ends])]
    return NodeRows(table, dict(zip(runs.values.to_pylist(), places, strict=True)))


def _read_parts(
    paths: Sequence[Path], columns: Sequence[str] | None, kind: str | None
) -> tuple[list[pa.Table], list[str], bool]:
    """Read files of rows: `(tables, problems, whether a file has disappeared)`."""
    tables, problems, vanished = [], [], False
    for path in paths:
        try:
            table, problem = read_part(path, columns, kind)
        except (OSError, DamagedError) as error:
            problem = str(error)
            vanished = vanished or isinstance(error, FileNotFoundError)
        else:
            tables.append(table)
        if problem:
            problems.append(problem)
    return tables, problems, vanished


def in_order(table: pa.Table) -> pa.Table:
    """Return rows ordered by device and time."""
    return table.sort_by([(key, "ascending") for key in ("device", "elapsed_s")])
