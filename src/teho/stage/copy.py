"""Copies files with rsync, or as one archive. An interrupted copy can be continued."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from teho.errors import InputError, TehoError
from teho.patterns import lazy_pattern
from teho.stage.archive import Archive
from teho.stage.machine import Machine, as_bytes, problem_of, shown
from teho.stage.plan import Entry
from teho.stage.side import PART

__all__ = ["copy_archive", "copy_files", "needs_rsync"]

_OPTIONS = (
    # Not the group, permissions and owner: they would change what a site's quotas count.
    "--links", "--times", "--omit-dir-times", "--executability",
    f"--partial-dir={PART}", "--no-implied-dirs", "--from0", "--files-from=-", "--protect-args",
)  # fmt: skip
_DONE = lazy_pattern(rb"\s*([\d,.]+)\s+\d+%")
_END_S = 10.0
_SEND_BYTES = 1 << 20
_PARTLY = (23, 24)
"""rsync(1): some files were not copied, or have vanished. The check names them."""


def needs_rsync() -> None:
    """Check that this machine has rsync.

    Raises:
        InputError: it has none.
    """
    if shutil.which("rsync") is None:
        raise InputError(
            "this machine has no command rsync",
            "",
            "run `conda install -c conda-forge rsync`, or ask the cluster's support for a module "
            "with rsync",
        )


def copy_files(
    files: Sequence[Entry],
    folder: str,
    machine: Machine,
    destination: str,
    unfinished: str,
    progress: Callable[[int], None],
    *,
    replace: bool,
) -> list[str]:
    """Copy files, links and folders with rsync; return the lines of what could not be copied.

    Args:
        files: with names relative to both folders, each folder before what is in it.
        folder: has the source.
        machine: of the destination.
        destination: the folder there.
        unfinished: a folder there, for the file that rsync is writing.
        progress: called with the number of bytes that are copied.
        replace: whether the files replace those that are there; otherwise no file is replaced.

    Raises:
        TehoError: rsync failed.
    """
    argv: list[str | bytes] = ["rsync", *_OPTIONS, "--info=progress2", "--no-human-readable"]
    argv += [] if replace else ["--ignore-existing"]
    argv.append(b"--temp-dir=" + as_bytes(unfinished))
    target = as_bytes(destination)
    if machine.host:
        argv += ["-e", machine.remote_shell]
        target = f"{machine.host}:".encode() + target
    argv += ["--", as_bytes(folder).rstrip(b"/") + b"/", target.rstrip(b"/") + b"/"]
    with (
        tempfile.TemporaryFile() as names,
        tempfile.TemporaryFile() as errors,
    ):
        names.write(b"".join(as_bytes(one.name) + b"\0" for one in files))
        names.seek(0)
        with subprocess.Popen(argv, stdin=names, stdout=subprocess.PIPE, stderr=errors) as process:
            try:
                _follow(cast("IO[bytes]", process.stdout), progress)
            except BaseException:
                # It keeps the part of the file that it is copying.
                with contextlib.suppress(OSError):
                    process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_END_S)
                process.kill()
                raise
        errors.seek(0)
        messages = [
            line for line in errors.read().decode(errors="backslashreplace").splitlines() if line
        ]
    if process.returncode in {0, *_PARTLY}:
        return messages
    if "command not found" in " ".join(messages) or process.returncode == 127:
        raise TehoError(
            f"{machine.host} has no command rsync",
            "",
            f"load a module with rsync on {machine.host}",
        )
    useful = [line for line in messages if not line.startswith("rsync error")] or messages
    raise problem_of(machine.host, process.returncode, useful)


def _follow(output: IO[bytes], progress: Callable[[int], None]) -> None:
    """Report the progress until rsync closes its output."""
    rest = b""
    while chunk := _read(output):
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        for line in reversed(lines):
            if found := _DONE.match(line):
                progress(int(re.sub(rb"\D", b"", found[1])))
                break


def _read(stream: IO[bytes]) -> bytes:
    return stream.read1(1 << 16)  # type: ignore[attr-defined,no-any-return] # it is buffered


def _gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join small parts, because sending each of them separately is slow."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        waiting.append(part)
        size += len(part)
        if size >= _SEND_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def copy_archive(
    archive: Archive,
    folder: str,
    machine: Machine,
    destination: str,
    name: str,
    progress: Callable[[int], None],
    *,
    replace: bool,
) -> None:
    """Write an archive at its destination, after what an interrupted try has written.

    Args:
        archive: its content.
        folder: has the source.
        machine: of the destination.
        destination: the folder there.
        name: of the archive's file.
        progress: called with the number of bytes that are copied.
        replace: whether the archive replaces an older one.

    Raises:
        TehoError: a file cannot be read, or the archive cannot be written.
    """
    with machine.talk(
        "receive", destination, name=name, mark=archive.mark, size=archive.size,
        mtime_ns=archive.mtime_ns, replace=replace,
    ) as talk:  # fmt: skip
        answers = talk.answers()
        done: int = next(answers)["had"]
        for data in _gathered(archive.stream(Path(folder), done)):
            talk.send(data)
            done += len(data)
            progress(done)
        for answer in answers:
            if answer["why"]:
                raise InputError(f"{shown(destination)}/{shown(name)}: {answer['why']}")
