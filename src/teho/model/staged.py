"""The result of `teho stage`: a copy to another file system or machine."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.finding import Finding

__all__ = ["SCHEMA", "FileSystem", "Problem", "Staged"]

SCHEMA = "teho.stage/1"
"""Name and version of the JSON form; an incompatible change raises the number."""


class Problem(msgspec.Struct, frozen=True):
    """One file, and what is wrong with it."""

    path: str
    """It begins with the name of the source. Bytes that are not text are written as `\\xff`."""
    why: str


class FileSystem(msgspec.Struct, frozen=True, kw_only=True):
    """The file system of one side."""

    kind: str
    """As the kernel names it, such as `lustre`; empty: unknown."""
    mounted_on: str
    free_bytes: int
    free_files: Union[int, None]
    """Null: the file system does not count files."""


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """One copy, or the plan of one."""

    schema: str = SCHEMA
    state: Literal["planned", "copied", "different"]
    """`different`: something is missing at the destination, or differs from the source."""
    source: str
    destination: str
    """The folder or file that the copy makes."""
    host: str = ""
    """Machine of the destination; empty: this one."""
    is_archive: bool
    """Whether the files are packed into one tar archive."""
    file_count: int
    link_count: int
    folder_count: int
    total_bytes: int
    mean_bytes: Union[float, None]
    """Null: there is no file."""
    copy_count: int
    """Number of files that were missing or older at the destination."""
    copy_link_count: int
    """Number of links that were missing there."""
    copy_bytes: int
    source_system: FileSystem
    destination_system: FileSystem
    quota_bytes: Union[int, None] = None
    """Bytes that your quota at the destination still allows; null: no quota is known."""
    quota_files: Union[int, None] = None
    """The same for files."""
    findings: tuple[Finding, ...] = ()
    conflicts: tuple[Problem, ...] = ()
    """Files of the user at the destination. They were not changed."""
    unreadable: tuple[Problem, ...] = ()
    skipped: tuple[Problem, ...] = ()
    """Special files, such as pipes and sockets."""
    differences: tuple[Problem, ...] = ()
    """What the check after the copy found."""
    checked_count: int = 0
    """Files and links at the destination whose size, time or target was compared."""
    checksum_count: int = 0
    """Files whose SHA-256 checksums were compared."""
    messages: tuple[str, ...] = ()
    """What rsync said about files that it could not copy."""
    elapsed_s: Union[float, None] = None
    """Time for the copy, without plan and check; null: nothing was copied."""
    commands: tuple[str, ...] = ()
    """How the data are used there."""
