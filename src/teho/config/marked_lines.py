"""Adds lines to a file of the user, such as `~/.bashrc`, and removes them again.

Two comments mark the lines. The rest of the file stays as it is, byte for byte.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from teho.errors import InputError
from teho.patterns import lazy_pattern

__all__ = ["add_lines", "has_lines", "remove_lines", "why_broken"]

_BEGIN, _END = b"# >>> teho always%s >>>\n", b"# <<< teho always <<<\n"
_MARK = b"# >>> teho always"
_OF_NEW_FILE, _AFTER_OPEN_LINE = b", in a new file", b", after a line without an end"
_MARKED = lazy_pattern(
    rb"# >>> teho always([^\n>]*) >>>\n(?:(?!# >>> teho always).*\n)*?# <<< teho always <<<\n?"
)


def has_lines(path: Path) -> bool:
    """Return whether a file has marked lines. A file that cannot be read has none."""
    try:
        return path.is_file() and _MARKED.search(path.read_bytes()) is not None
    except OSError:
        return False


def why_broken(path: Path) -> str:
    """Say why the marked lines of a file are not whole; empty: they are, or it has none."""
    try:
        _marked(path, path.read_bytes() if path.is_file() else b"")
    except OSError:
        return ""
    except InputError as error:
        return str(error)
    return ""


def add_lines(path: Path, lines: Sequence[str]) -> None:
    """Add lines at the end of a file; marked lines that it already has are replaced.

    Raises:
        InputError: the file cannot be read or written. It is then unchanged.
    """
    remove_lines(path)
    content = _read(path)
    how = _OF_NEW_FILE if content is None else b""
    if content and not content.endswith(b"\n"):
        how = _AFTER_OPEN_LINE
    added = _BEGIN % how + "".join(f"{line}\n" for line in lines).encode() + _END
    if how == _AFTER_OPEN_LINE:
        added = b"\n" + added
    try:
        # Not by a new file in its place: that would lose hard links and access control lists.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            is_whole = os.write(descriptor, added) == len(added)
        except OSError:
            is_whole = False
        if not is_whole:
            os.ftruncate(descriptor, len(content or b""))
            if content is None:
                path.resolve().unlink(missing_ok=True)
        os.close(descriptor)
    except OSError as error:
        raise _unusable(path, error) from error
    if not is_whole:
        raise InputError(f"{path}: the lines cannot be written", "free space on the disk")


def remove_lines(path: Path) -> bool:
    """Remove the marked lines, and the file if `add_lines` created it; return whether it had any.

    Raises:
        InputError: the file cannot be read or written, or only one of the two comments is left.
    """
    content = _read(path) or b""
    found = _marked(path, content)
    if found is None:
        return False
    begin, rest = found.start(), content[found.end() :]
    if found[1] == _AFTER_OPEN_LINE and not rest:
        begin -= 1  # If lines follow, they keep the line end before them.
    kept = content[:begin] + rest
    try:
        if found[1] == _OF_NEW_FILE and not kept:
            path.resolve().unlink()
        elif rest:
            _replace(path.resolve(), kept)
        else:
            os.truncate(path, begin)  # works on a full disk too
    except OSError as error:
        raise _unusable(path, error) from error
    return True


def _marked(path: Path, content: bytes) -> re.Match[bytes] | None:
    """Return the marked lines; None: there are none.

    Raises:
        InputError: only one of the two comments is left.
    """
    found = _MARKED.search(content)
    if found is None and (_MARK in content or _END.strip() in content):
        raise InputError(
            f"{path} has only one of the two comments of `teho always`",
            "a line `# >>> teho always >>>`, then a line `# <<< teho always <<<`",
            "delete the lines of `teho always` from this file with an editor",
        )
    return found


def _read(path: Path) -> bytes | None:
    """Return the content of a file; None: it does not exist."""
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", "a file")
        return path.read_bytes() if path.exists() else None
    except OSError as error:
        raise _unusable(path, error) from error


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.teho-{os.getpid()}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        shutil.copystat(path, temporary)
        with contextlib.suppress(PermissionError):
            os.chown(temporary, path.stat().st_uid, path.stat().st_gid)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _unusable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: {error.strerror}", "a file that you can read and write")
