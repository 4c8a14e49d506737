"""`pack`: many small files, or the samples of a dataset, into a few tar archives."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import multiprocessing
import os
import tarfile
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from teho.errors import InputError, TehoError
from teho.feed.index import (
    FILES,
    FORMAT,
    SUMMARY,
    Index,
    read_index,
    shard_name,
    split_name,
    write_index,
)
from teho.feed.progress import progress
from teho.feed.room import cores
from teho.units import format_bytes

__all__ = ["Packing", "pack"]

_SHARD_BYTES = 256 * 1024**2
_READERS = 32
"""Threads that read files: most of them wait for the file system."""
_CHUNK_BYTES = 1024**2
_BUFFER_BYTES = 256 * 1024**2
_LARGEST_BYTES = 1024**3
_BLOCK = tarfile.BLOCKSIZE
_AGAIN = "run the same command again: it continues"

Member = tuple[str, bytes, int]
"""Name, content, and time of change in s."""


class Packing(NamedTuple):
    """What `pack` did."""

    out: Path
    samples: int
    members: int
    """Number of files in the archives."""
    content_bytes: int
    shards: int
    kept_samples: int
    """Samples that an earlier, interrupted call had packed."""


class _Source(NamedTuple):
    """What is packed."""

    mark: str
    """Changes if the names of the files change, or the type or length of the dataset."""
    samples: int
    read: Callable[[range], list[list[Member]]]
    """Returns the members of some samples."""
    executor: Callable[[], Executor]


def pack(
    source: Any, out: str | Path, *, shard_bytes: int = _SHARD_BYTES, workers: int | None = None
) -> Packing:
    """Pack many small files into a few large ones that are read from beginning to end.

    `packed(out)` reads the result, and so do tar and webdataset. After an interruption, the same
    call continues with the shard that was being written. The source is not changed.

    Args:
        source: a folder; or a dataset with `__len__` and `__getitem__`, whose samples are arrays,
            numbers, texts or bytes, or a tuple or dictionary of these.
        out: a new folder.
        shard_bytes: a shard ends with the sample that reaches this size.
        workers: number of threads that read files; for a dataset, number of processes.

    Raises:
        InputError: the source cannot be read, has changed, or has no files; or `out` has other
            files.
        TehoError: a process that loaded samples was killed.
    """
    folder = Path(out)
    if isinstance(source, (str, os.PathLike)):
        work = _files_of(Path(source), folder, workers or _READERS)
    else:
        work = _samples_of(source, workers or cores())
    if not work.samples:
        raise InputError(f"{source} has nothing to pack", "a folder with files, or samples")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(folder):
            return _packed(work, folder, shard_bytes)
    except OSError as error:
        raise InputError(f"{error.filename or folder}: {error.strerror}", "", _AGAIN) from error


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Refuse a second process that packs into the same folder."""
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another process is packing into {folder}") from None
        except OSError:  # this file system has no locks
            pass
        yield


def _packed(work: _Source, folder: Path, shard_bytes: int) -> Packing:
    heads = list(_finished(folder, work.mark))
    kept = sum(head["samples"] for head in heads)
    with progress("packing", work.samples) as line:
        samples = _counted(_read_ahead(work, kept), kept, line)
        while sum(head["samples"] for head in heads) < work.samples:
            path = folder / shard_name(len(heads))
            heads.append(_write_shard(path, samples, work.mark, shard_bytes))
    shards = [{"name": f"{shard_name(number)}.tar", **head} for number, head in enumerate(heads)]
    sums = "".join(f"{shard['sha256']}  {shard['name']}\n" for shard in shards)
    _write(folder / "SHA256SUMS", sums)
    total = {name: sum(head[name] for head in heads) for name in ("samples", "members", "bytes")}
    summary = {"format": FORMAT, "mark": work.mark, **total, "shards": shards}
    _write(folder / SUMMARY, json.dumps(summary, indent=1) + "\n")
    return Packing(folder, total["samples"], total["members"], total["bytes"], len(heads), kept)


def _counted(
    samples: Iterator[list[Member]], first: int, line: Callable[[int], None]
) -> Iterator[list[Member]]:
    for number, sample in enumerate(samples, first):
        line(number)
        yield sample


def _finished(folder: Path, mark: str) -> Iterator[dict[str, Any]]:
    """Yield the heads of the shards that an earlier call has finished."""
    number = 0
    while (shard := folder / f"{shard_name(number)}.tar").exists():
        head = read_index(shard.with_suffix(".idx")).head
        if head["mark"] != mark:
            raise InputError(
                f"{folder} has shards of other data, or the source has changed since",
                "a new folder",
                f"delete {folder} to pack all again",
            )
        yield {name: head[name] for name in ("samples", "members", "bytes", "sha256")}
        number += 1


def _read_ahead(work: _Source, first: int) -> Iterator[list[Member]]:
    """Yield the members of each sample in order, while later samples are read."""
    waiting: deque[Future[list[list[Member]]]] = deque()
    chunk, many, begin = 1, 2 * _READERS, first
    with work.executor() as executor:
        try:
            while begin < work.samples or waiting:
                while begin < work.samples and len(waiting) < many:
                    end = min(begin + chunk, work.samples)
                    waiting.append(executor.submit(work.read, range(begin, end)))
                    begin = end
                samples = waiting.popleft().result()
                size = sum(len(data) for sample in samples for _, data, _ in sample)
                mean = max(1, size // len(samples))
                # Small files in groups, because a hand-over takes time; large files one by one.
                chunk = max(1, min(64, _CHUNK_BYTES // mean))
                many = max(2, min(2 * _READERS, _BUFFER_BYTES // (chunk * mean)))
                yield from samples
        except BrokenProcessPool as error:
            raise TehoError(
                "a process that loaded samples was killed, probably because memory was full",
                "",
                f"use fewer workers. {_AGAIN}",
            ) from error
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _write_shard(
    path: Path, samples: Iterator[list[Member]], mark: str, shard_bytes: int
) -> dict[str, Any]:
    """Write one shard and its index; the archive gets its name last."""
    firsts, offsets, sizes, sums = array("I", [0]), array("Q"), array("Q"), array("I")
    ends, names = array("I"), bytearray()
    offset, digest = 0, hashlib.sha256()
    new = path.with_suffix(".tar.part")
    with new.open("wb") as file:

        def write(data: bytes) -> None:
            nonlocal offset
            file.write(data)
            digest.update(data)
            offset += len(data)

        for sample in samples:
            for name, data, changed_s in sample:
                write(_header(name, len(data), changed_s))
                offsets.append(offset)
                sizes.append(len(data))
                sums.append(zlib.crc32(data))
                names += os.fsencode(name)
                ends.append(len(names))
                write(data)
                write(bytes(-len(data) % _BLOCK))
            firsts.append(len(sizes))
            if offset >= shard_bytes:
                break
        write(bytes(-offset % tarfile.RECORDSIZE or tarfile.RECORDSIZE))
        file.flush()
        os.fsync(file.fileno())
    head = {"samples": len(firsts) - 1, "members": len(sizes), "bytes": sum(sizes),
            "sha256": digest.hexdigest()}  # fmt: skip
    index = Index({**head, "mark": mark}, firsts, offsets, sizes, sums, ends, bytes(names))
    write_index(path.with_suffix(".idx"), index)
    new.replace(path.with_suffix(".tar"))
    return head


def _header(name: str, size: int, changed_s: int) -> bytes:
    found = tarfile.TarInfo(name)
    found.size, found.mtime = size, changed_s
    return found.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _write(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.part")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


# ---- a folder ----


def _files_of(source: Path, out: Path, readers: int) -> _Source:
    if not source.is_dir():
        raise InputError(f"{source} is not a folder", "a folder with files")
    if source.resolve() in (out.resolve(), *out.resolve().parents):
        raise InputError(f"{out} is inside {source}", "a folder outside of what is packed")
    groups = list(_groups(source))
    mark = hashlib.sha256(b"\0".join(os.fsencode(name) for one in groups for name in one))
    return _Source(
        f"{FILES}{mark.hexdigest()[:16]}", len(groups), partial(_read_files, source, groups),
        partial(ThreadPoolExecutor, readers),
    )  # fmt: skip


def _groups(
    source: Path, inner: str = "", seen: frozenset[str] = frozenset()
) -> Iterator[list[str]]:
    """Yield the names of the files of each sample, in the order of folders and keys."""
    folder = source / inner
    if (real := os.path.realpath(folder)) in seen:  # a link to a folder above
        return
    with os.scandir(folder) as entries:
        kinds = [(entry.name, entry.is_dir(), entry.is_file()) for entry in entries]
    prefix = f"{inner}/" if inner else ""
    files = sorted((split_name(prefix + name)[0], prefix + name) for name, _, ok in kinds if ok)
    for _, group in groupby(files, key=lambda file: file[0]):
        yield [name for _, name in group]
    for name in sorted(name for name, is_folder, _ in kinds if is_folder):
        yield from _groups(source, prefix + name, seen | {real})


def _read_files(source: Path, groups: Sequence[Sequence[str]], rows: range) -> list[list[Member]]:
    return [[_read_file(source, name) for name in groups[row]] for row in rows]


def _read_file(source: Path, name: str) -> Member:
    path = f"{source}/{name}"
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - many small files: fewer objects
        status = os.fstat(file.fileno())
        if status.st_size > _LARGEST_BYTES:
            raise InputError(
                f"{path} has {format_bytes(status.st_size)}",
                f"files of at most {format_bytes(_LARGEST_BYTES)}: packing helps small files",
                "move it out of the folder",
            )
        data = file.read(status.st_size + 1)
        while len(data) < status.st_size and (more := file.read(status.st_size - len(data))):
            data += more
    if len(data) != status.st_size:
        raise InputError(f"{path} changed while it was packed", "", _AGAIN)
    return name, data, int(status.st_mtime)


# ---- a dataset ----

_dataset: Any = None
"""In a process that loads samples: the dataset."""


def _samples_of(dataset: Any, workers: int) -> _Source:
    count = len(dataset)
    context = multiprocessing.get_context("fork")
    kind = f"{type(dataset).__module__}.{type(dataset).__qualname__}"
    return _Source(
        f"{kind} {count}", count, _read_samples,
        partial(ProcessPoolExecutor, workers, context, _keep, (dataset,)),
    )  # fmt: skip


def _keep(dataset: Any) -> None:
    global _dataset  # noqa: PLW0603 - this process exists for the dataset
    _dataset = dataset


def _read_samples(rows: range) -> list[list[Member]]:
    return [_members(row, _dataset[row]) for row in rows]


def _members(row: int, sample: Any) -> list[Member]:
    """Return a sample as files. Their names say how to put it together again."""
    if isinstance(sample, Mapping):
        parts = [(f"d.{key}", value) for key, value in sample.items()]
    elif isinstance(sample, (tuple, list)):
        parts = [(f"t.{place}", value) for place, value in enumerate(sample)]
    else:
        parts = [("s", sample)]
    found = []
    for name, value in parts:
        ending, data = _encoded(value)
        found.append((f"{row:09d}.{name}.{ending}", data, 0))
    return found


def _encoded(value: Any) -> tuple[str, bytes]:
    if isinstance(value, bytes):
        return "bin", value
    with suppress(TypeError, ValueError):
        return "json", json.dumps(value).encode()
    if hasattr(value, "__array__") and hasattr(value, "shape"):
        import numpy as np

        file = io.BytesIO()
        np.save(file, np.asarray(value), allow_pickle=False)
        return "npy", file.getvalue()
    raise InputError(
        f"a sample has a part of type {type(value).__name__}",
        "arrays, numbers, texts or bytes",
        "pack the folder of the files, and let `packed` decode them",
    )
