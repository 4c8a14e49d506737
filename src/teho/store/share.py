"""Copies of recordings that the members of one Unix group can read, in a folder of a project.

    SHARED/USER/GROUP/runs/RUN

docs/decisions/sharing.md has the reasons. A recording itself never becomes readable for others.
"""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import pwd
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from teho.errors import InputError, RecordingError
from teho.model.run import RunState
from teho.store.layout import SHARED_PARTS, open_private, run_file, runs_directory
from teho.store.read import read_run, run_state

__all__ = [
    "Copy",
    "copies",
    "groups_of_runs",
    "is_sound",
    "own_groups",
    "share",
    "shared_homes",
    "unshare",
]

_PASS, _FOLDER, _FILE = 0o711, 0o750, 0o640
_ACLS = ("system.posix_acl_default", "system.posix_acl_access")
_MOST_FILES = 200_000
_LONGEST_JSON_BYTES = 64 << 20


class Copy(NamedTuple):
    """One shared run."""

    directory: Path
    group: str


def share(run: Path, shared: Path, group: str) -> Path:
    """Copy a recording that has ended, so that a group can read the copy; return the copy.

    A copy that exists is replaced.

    Args:
        run: the recording.
        shared: the folder of the project.
        group: a group of this user.

    Raises:
        InputError: this user is not a member of the group, or the folder cannot be used.
        RecordingError: the run has not ended, or cannot be read or copied.
    """
    number = _group_number(group)
    if run_state(read_run(run), run) is RunState.RUNNING:
        raise RecordingError(f"{run.name} still runs", "a run that has ended", "share it later")
    try:
        runs = _folders(shared, group, number)
        temporary = runs / f".{run.name}.{os.getpid()}"
        try:
            temporary.mkdir(mode=0o700)
            for source, target in _files(run, temporary):
                _copy(source, target, number)
            for folder, _, _ in os.walk(temporary, topdown=False):
                _open_to_group(Path(folder), _FOLDER, number)
            copy = runs / run.name
            _remove(copy)
            return temporary.rename(copy)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    except OSError as error:
        raise RecordingError(
            f"{error.filename or shared}: {error.strerror}",
            "a folder in which you can create files, and that can change the group of a file",
            "`teho share --help`",
        ) from error


def unshare(run_id: str, shared: Path, group: str = "") -> list[Path]:
    """Delete this user's copies of a run, and return them.

    Args:
        run_id: the run.
        shared: the folder of the project.
        group: only the copy for this group; empty: all copies.

    Raises:
        RecordingError: a copy cannot be deleted.
    """
    removed = []
    for copy in copies(shared):
        if copy.directory.name == run_id and group in {"", copy.group}:
            try:
                _remove(copy.directory)
            except OSError as error:
                raise RecordingError(f"{error.filename}: {error.strerror}") from error
            removed.append(copy.directory)
    return removed


def copies(shared: Path) -> list[Copy]:
    """Return all copies of this user, oldest run first."""
    own = shared / _own_name()
    found = []
    with contextlib.suppress(OSError):
        for group in sorted(own.iterdir()):
            if group.is_dir() and not group.is_symlink():
                found += [
                    Copy(run, group.name)
                    for run in sorted(runs_directory(group).glob("[!.]*"))
                    if run_file(run).exists()
                ]
    return sorted(found, key=lambda copy: copy.directory.name)


def own_groups() -> list[str]:
    """Return the names of the groups of which this user is a member."""
    names = []
    for number in sorted({os.getegid(), *os.getgroups()}):
        with contextlib.suppress(KeyError):  # a group without a name
            names.append(grp.getgrgid(number).gr_name)
    return names


def shared_homes(shared: Path) -> list[Path]:
    """Return the homes of the shared runs that this user may read.

    A home counts only if its folders belong to the user whose name it has.
    """
    groups = own_groups()
    found = []
    with contextlib.suppress(OSError):
        for folder in sorted(shared.iterdir()):
            found += [
                home
                for home in (folder / group for group in groups)
                if all(_is_of(one, folder.name) for one in (folder, home, runs_directory(home)))
            ]
    return found


def is_sound(directory: Path) -> bool:
    """Return whether another user's recording has only plain files and folders of one owner.

    A link could lead to a private file of the reader, and a pipe would stop the reader.
    """
    try:
        owner = directory.lstat().st_uid
        count = 0
        for folder, folders, files in os.walk(directory):
            for name in (".", *folders, *files):
                status = os.lstat(f"{folder}/{name}")
                count += 1
                is_plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
                is_huge = name.endswith(".json") and status.st_size > _LONGEST_JSON_BYTES
                if not is_plain or is_huge or status.st_uid != owner or count > _MOST_FILES:
                    return False
    except OSError:
        return False
    return count > 0 and owner == run_file(directory).lstat().st_uid


def _own_name() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _is_of(folder: Path, user: str) -> bool:
    """Return whether a path is a folder, not a link, of the user with this name."""
    try:
        status = folder.lstat()
        return stat.S_ISDIR(status.st_mode) and pwd.getpwuid(status.st_uid).pw_name == user
    except (OSError, KeyError):
        return False


def _group_number(group: str) -> int:
    try:
        number = grp.getgrnam(group).gr_gid
    except KeyError:
        number = -1
    if number not in {os.getegid(), *os.getgroups()}:
        raise InputError(
            f"you are not a member of a group {group!r}", f"one of {', '.join(own_groups())}"
        )
    return number


def _folders(shared: Path, group: str, number: int) -> Path:
    """Create the folders above this user's copies for a group, and return the last one."""
    if not shared.is_dir():
        raise InputError(
            f"{shared}: no such folder",
            "a folder that the members of your project can enter",
            f"`mkdir -m 3770 {shared}`",
        )
    own = shared / _own_name()
    of_group = own / group
    runs = runs_directory(of_group)
    for folder, mode in ((own, _PASS), (of_group, _FOLDER), (runs, _FOLDER)):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if not _is_of(folder, _own_name()):
            raise RecordingError(
                f"{folder} is not a folder of yours",
                "a folder that only you can write",
                f"ask the owner of {shared} to delete it",
            )
        _open_to_group(folder, mode, number)
    return runs


def _files(run: Path, target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each file to copy and its place in the copy; create the folders of the copy."""
    for name in SHARED_PARTS:
        part = run / name
        if part.is_symlink():
            continue
        if part.is_file():
            yield part, target / name
        elif part.is_dir():
            (target / name).mkdir(mode=0o700)
            for path in sorted(part.iterdir()):
                if not path.name.startswith(".") and path.is_file() and not path.is_symlink():
                    yield path, target / name / path.name


def _copy(source: Path, target: Path, group: int) -> None:
    read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with (
        os.fdopen(read, "rb") as content,
        os.fdopen(open_private(target, exclusive=True), "wb") as copy,
    ):
        shutil.copyfileobj(content, copy, 1 << 20)
    _open_to_group(target, _FILE, group)


def _open_to_group(path: Path, mode: int, group: int) -> None:
    """Give a new file or folder to a group, with exactly this mode.

    The folder above may have given it an access list. With such a list, the bits of the group in
    the mode are a limit for all entries of the list, so the list must go first.
    """
    for name in _ACLS:
        try:
            os.removexattr(path, name, follow_symlinks=False)
        except OSError as error:
            if error.errno not in {errno.ENODATA, errno.ENOTSUP}:
                raise
    os.chown(path, -1, group, follow_symlinks=False)
    path.chmod(mode)


def _remove(copy: Path) -> None:
    if copy.is_symlink():
        copy.unlink()
    elif copy.exists():
        # Under a hidden name first: a reader sees the whole copy or none.
        hidden = copy.with_name(f".{copy.name}.{os.getpid()}.old")
        shutil.rmtree(copy.rename(hidden))


def groups_of_runs(copies_of_user: Sequence[Copy]) -> dict[str, list[str]]:
    """Return the groups of each shared run."""
    found: dict[str, list[str]] = {}
    for copy in copies_of_user:
        found.setdefault(copy.directory.name, []).append(copy.group)
    return found
