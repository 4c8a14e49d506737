"""Identifies the code that a run executes: the commit of its repository, and the program's file.

No other program is executed, and only a few small files are read. Changes that were not committed
are not known, so the file of the program has its own checksum.
"""

from __future__ import annotations

import binascii
import contextlib
from collections.abc import Sequence
from pathlib import Path

from teho.patterns import lazy_pattern

__all__ = ["SCRIPTS", "code_versions"]

SCRIPTS = (".py", ".sh", ".R", ".jl")
"""Endings of the names of programs that are text."""
_MOST_FOLDERS = 32
_LARGEST_FILE_BYTES = 4 << 20
_LARGEST_NAME_BYTES = 4096
_COMMIT = lazy_pattern(r"[0-9a-f]{40}([0-9a-f]{24})?")
_BRANCH = lazy_pattern(r"refs/[\w.+@/-]+")
_SHOWN = 12
"""Characters of a commit that are enough to recognise it."""


def code_versions(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Return `commit` and `program file`, as far as they are known.

    Args:
        command: as typed.
        folder: the working directory.
    """
    found = {}
    script = _script(command, folder)
    if commit := _commit(script.parent if script else folder):
        found["commit"] = commit[:_SHOWN]
    if script and (checksum := _checksum(script)):
        found["program file"] = f"{script.name} {checksum}"
    return found


def _script(command: Sequence[str], folder: Path) -> Path | None:
    for word in command:
        if word.endswith(SCRIPTS):
            with contextlib.suppress(OSError, ValueError):
                path = (folder / word).resolve()
                return path if path.is_file() else None
    return None


def _checksum(path: Path) -> str:
    # Not hashlib, whose library needs memory for as long as the program runs.
    with contextlib.suppress(OSError), path.open("rb") as file:
        content = file.read(_LARGEST_FILE_BYTES + 1)
        if len(content) <= _LARGEST_FILE_BYTES:
            return f"{binascii.crc32(content):08x}"
    return ""


def _commit(folder: Path) -> str:
    """Return the commit that is checked out in the repository around a folder; empty: unknown."""
    with contextlib.suppress(OSError, ValueError):
        for parent in (folder, *folder.parents)[:_MOST_FOLDERS]:
            if (git := _git_folder(parent / ".git")) is not None:
                return _checked_out(git)
    return ""


def _git_folder(path: Path) -> Path | None:
    """Return the folder with the data of a repository; a worktree has a file that names it."""
    if path.is_file():
        key, _, named = _text(path).partition(": ")
        return path.parent / named if key == "gitdir" and named else None
    return path if (path / "HEAD").is_file() else None


def _checked_out(git: Path) -> str:
    head = _text(git / "HEAD")
    if _COMMIT.fullmatch(head):
        return head
    branch = head.removeprefix("ref: ")
    if not _BRANCH.fullmatch(branch) or ".." in branch:
        return ""
    shared = git / _text(git / "commondir") if (git / "commondir").is_file() else git
    for place in (git, shared):
        if (place / branch).is_file():
            commit = _text(place / branch)
            return commit if _COMMIT.fullmatch(commit) else ""
    return _packed(shared / "packed-refs", branch)


def _packed(path: Path, branch: str) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file.read(_LARGEST_FILE_BYTES).splitlines():
            commit, _, name = line.partition(" ")
            if name == branch and _COMMIT.fullmatch(commit):
                return commit
    return ""


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(_LARGEST_NAME_BYTES).strip()
