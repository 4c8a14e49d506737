"""One copy with `teho stage`: plan it, do it, check it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.doctor.files import read_quotas
from teho.doctor.snapshot import Folder
from teho.errors import InputError
from teho.model.finding import Evidence, Finding, Severity, Threshold
from teho.model.staged import FileSystem, Problem, Staged
from teho.stage import copy, verify
from teho.stage.archive import Archive
from teho.stage.machine import Machine, Place, shown
from teho.stage.plan import (
    Entry,
    Plan,
    differences,
    entries,
    is_many_small,
    plan_copy,
)
from teho.store.staged import load_staged, save_staged
from teho.units import counted, format_bytes

__all__ = ["Progress", "Staging", "Wanted"]

Progress = Callable[[str, int, int], None]
"""Called with what goes on, the bytes that are done, and all bytes."""


class Wanted(NamedTuple):
    """What the user asked for."""

    source: str
    destination: Place
    archive: bool | None
    """None: an archive if there are many small files, and they go to a network file system."""
    checksums: int | None
    """Number of files whose checksums are compared; None: all files."""


class Staging:
    """One copy.

    Args:
        wanted: what the user asked for.
        here: the machine of the source.
        there: the machine of the destination.
        home: the directory of all recordings, which has the records of earlier copies.
        limits: the thresholds for small files.

    Attributes:
        plan: what has to be copied.

    Raises:
        TehoError: source or destination cannot be used, or the other machine not reached.
    """

    def __init__(
        self,
        wanted: Wanted,
        here: Machine,
        there: Machine,
        home: Path,
        limits: Mapping[str, Threshold],
    ) -> None:
        self._wanted, self._here, self._there, self._home = wanted, here, there, home
        self._many, self._small = limits["files_min"], limits["size_kib"]
        self._started_s: float | None = None
        self._source_place = _look(here, wanted.source)
        self._place = _look(there, wanted.destination.path, quotas=True)
        self._folder, self._name = os.path.split(self._source_place.path)
        self._check_places()
        self._source = entries(here.ask("list", self._folder, name=self._name))
        self._target_name = f"{self._name}.tar" if self.is_archive else self._name
        self._target = os.path.join(self._place.path, self._target_name)  # noqa: PTH118 - not only here
        self._copy_key = f"{self._source_place.path}\0{there.host}\0{self._target}"
        self._staged = load_staged(home, self._copy_key)
        self.plan: Plan = plan_copy(self._expected, self._list_there(), self._staged)
        if self.is_archive:
            packed = plan_copy(self._source, (), {})
            self.plan = self.plan._replace(skipped=packed.skipped, unreadable=packed.unreadable)

    def _check_places(self) -> None:
        source, place = self._source_place, self._place
        if source.kind not in {"f", "d"}:
            found = "no such file or folder" if not source.kind else f"it is {source.kind}"
            raise InputError(f"{shown(self._wanted.source)}: {found}", "a file or a folder")
        if not self._name:
            raise InputError("SRC is /", "a folder below it")
        to = str(self._wanted.destination)
        if place.kind not in {"", "d"}:
            raise InputError(f"{to} is a file", "a folder, in which the copy is made")
        if not self._there.host and f"{place.path}/".startswith(f"{source.path}/"):
            raise InputError(f"{to} is inside {shown(source.path)}", "a folder outside of SRC")
        if not self._there.host and place.path == self._folder:
            raise InputError(
                f"{to} is the folder that {shown(self._name)} is in", "another folder as DEST"
            )
        if not place.folder.is_writable:
            raise InputError(
                f"{to}: you cannot write to {shown(place.folder.path)}", "a folder that you can use"
            )

    def _list_there(self) -> list[Entry]:
        return entries(self._there.ask("list", self._place.path, name=self._target_name))

    @cached_property
    def _files(self) -> list[Entry]:
        return [one for one in self._source if one.kind == "f"]

    @cached_property
    def _total_bytes(self) -> int:
        return sum(one.size for one in self._files)

    @cached_property
    def _are_many_small(self) -> bool:
        """Whether the files are many and small, and a network file system gets them."""
        folder = self._place.folder
        is_network = folder.is_network or (bool(self._there.host) and not folder.file_system)
        return is_network and is_many_small(
            len(self._files), self._total_bytes, self._many, self._small
        )

    @cached_property
    def is_archive(self) -> bool:
        """Whether the files are packed into one archive."""
        if self._wanted.archive and self._source_place.kind != "d":
            raise InputError(f"--archive: {shown(self._name)} is a single file", "a folder as SRC")
        wanted = self._wanted.archive
        return self._are_many_small if wanted is None else wanted

    @cached_property
    def _archive(self) -> Archive:
        return Archive([one for one in plan_copy(self._source, (), {}).new if not one.why])

    @cached_property
    def _expected(self) -> list[Entry]:
        """What should be at the destination."""
        if not self.is_archive:
            return self._source
        archive = self._archive
        return [Entry(self._target_name, "f", archive.size, archive.mtime_ns)]

    def planned(self) -> Staged:
        """Return the plan."""
        return self._described("planned")

    def _described(self, state: str, **more: Any) -> Staged:
        plan = self.plan
        return Staged(
            state="different" if state == "copied" and self._is_different(more) else state,  # type: ignore[arg-type]
            source=shown(self._source_place.path),
            destination=shown(self._target),
            host=self._there.host,
            is_archive=self.is_archive,
            file_count=len(self._files),
            link_count=sum(one.kind == "l" for one in self._source),
            folder_count=sum(one.kind == "d" for one in self._source),
            total_bytes=self._total_bytes,
            mean_bytes=self._total_bytes / len(self._files) if self._files else None,
            copy_count=sum(one.kind == "f" for one in plan.to_copy),
            copy_link_count=sum(one.kind == "l" for one in plan.to_copy),
            copy_bytes=plan.copy_bytes,
            source_system=_system(self._source_place.folder),
            destination_system=_system(self._place.folder),
            findings=tuple(self._findings()),
            conflicts=plan.conflicts,
            unreadable=plan.unreadable,
            skipped=plan.skipped,
            commands=self._commands() if self.is_archive else (),
            **more,
        )

    def _is_different(self, more: Mapping[str, Any]) -> bool:
        return bool(self.plan.conflicts or self.plan.unreadable or more.get("differences"))

    def _findings(self) -> Iterator[Finding]:
        if self._are_many_small:
            kind = self._place.folder.file_system or "a file system that is not known"
            mean = format_bytes(self._total_bytes / len(self._files))
            yield Finding(
                kind="many_small_files",
                severity=Severity.WARNING,
                sentence=f"{counted(len(self._files), 'file')} with a mean size of {mean} go to "
                f"{kind}: there, each file takes requests to a server that all users share.",
                evidence=(
                    Evidence("files", len(self._files)),
                    Evidence("mean size", self._total_bytes / len(self._files), "bytes"),
                ),
                thresholds=(self._many, self._small),
                action="They are packed into one archive. To copy them as they are: `--no-archive`."
                if self.is_archive
                else "Leave out `--no-archive`: then they are packed into one archive.",
            )
        yield from self._quota_findings()

    def _quota_findings(self) -> Iterator[Finding]:
        places = {self._place.folder.mounted_on, self._place.device}
        for quota in (quota for text in self._place.quotas for quota in read_quotas(text)):
            if quota.file_system not in places:
                continue
            for what, used, limit, more, unit in (
                ("space", quota.used_bytes, quota.limit_bytes, self.plan.copy_bytes, "bytes"),
                ("files", quota.used_files, quota.limit_files, len(self.plan.to_copy), ""),
            ):
                if not limit or used + more <= limit:
                    continue
                left = max(0, limit - used)
                yield Finding(
                    kind="quota",
                    severity=Severity.WARNING,
                    sentence=f"The copy exceeds your quota of {what} on {quota.file_system}: it "
                    f"needs {_amount(more, unit)}, and {_amount(left, unit)} are left.",
                    evidence=(Evidence("used", used, unit), Evidence("allowed", limit, unit)),
                    thresholds=(),
                    action="Delete files there, or choose another DEST.",
                )

    def _commands(self) -> tuple[str, ...]:
        path = shlex.quote(shown(self._target))
        where = f" on {self._there.host}" if self._there.host else ""
        submit = f"`teho submit --stage {path} -- python train.py`"
        return (
            f"To unpack the archive on each node at the start of a job{where}: {submit}",
            f'To unpack it in your own job script: `tar -xf {path} -C "$TMPDIR"`',
        )

    def check_space(self) -> None:
        """Check that the copy fits.

        Raises:
            InputError: there is too little space, or there are too few free files.
        """
        folder = self._place.folder
        needed = self.plan.copy_bytes
        where = shown(folder.mounted_on or folder.path)
        if needed > folder.free_bytes:
            raise InputError(
                f"{where} has {format_bytes(folder.free_bytes)} free",
                f"{format_bytes(needed)} for this copy",
                "delete files there, or choose another DEST",
            )
        if folder.total_files and len(self.plan.new) > folder.free_files:
            raise InputError(
                f"{where} has room for {counted(folder.free_files, 'more file')}",
                f"room for {len(self.plan.new):,}",
                "pack the files with `--archive`, or choose another DEST",
            )

    def copy(self, progress: Progress) -> list[str]:
        """Copy what is missing or older; return what rsync could not copy.

        Raises:
            TehoError: the copy failed.
            OSError: the record of the copy cannot be written.
        """
        if not (self.plan.new or self.plan.newer):
            return []
        if not self.is_archive:
            copy.needs_rsync()
        self._started_s = time.monotonic()
        self._there.ask("make", self._place.path)
        # Before the copy: an interrupted copy knows its files. Those that will be replaced are
        # recorded as they are until they have been replaced.
        self._record(self.plan.new)
        said: list[str] = []
        done = 0

        def show(copied: int) -> None:
            progress("copying", done + copied, self.plan.copy_bytes)

        for part, replace in ((self.plan.new, False), (self.plan.newer, True)):
            if not part:
                continue
            if self.is_archive:
                copy.copy_archive(
                    self._archive, self._folder, self._there, self._place.path, self._target_name,
                    show, replace=replace,
                )  # fmt: skip
            else:
                said += copy.copy_files(
                    part, self._folder, self._there, self._place.path, show, replace=replace
                )
            done += sum(one.size for one in part)
        self._record(self.plan.newer)
        return said

    def _record(self, files: tuple[Entry, ...]) -> None:
        new = {one.name: (one.size, one.mtime_ns) for one in files if one.kind == "f"}
        if new:
            self._staged |= new
            save_staged(self._home, self._copy_key, self._staged)

    def check(self, messages: list[str], progress: Progress) -> Staged:
        """Compare source and destination, and return the result.

        Args:
            messages: from `copy`.
            progress: called while checksums are compared.

        Raises:
            TehoError: one side cannot be read.
        """
        elapsed_s = time.monotonic() - self._started_s if self._started_s is not None else None
        wanted = self.plan.wanted
        found = differences(wanted, self._list_there())
        bad = {one.path for one in found}
        archived = None
        files = [one for one in wanted if one.kind == "f" and shown(one.name) not in bad]
        if self.is_archive and files:
            offsets = self._archive.places()
            archived = (self._target_name, offsets)
            files = [one for one in self._files if one.name in offsets]
        parts = verify.choose(files, self._wanted.checksums)
        total = sum(part.size for part in parts)
        found += verify.compare(
            parts,
            (self._here, self._folder),
            (self._there, self._place.path),
            archived,
            lambda done: progress("comparing checksums", done, total),
        )
        return self._described(
            "copied",
            differences=tuple(self._explained(found)),
            checked_count=len(wanted),
            checksum_count=len(parts),
            messages=tuple(messages),
            elapsed_s=elapsed_s,
        )

    def _explained(self, found: list[Problem]) -> Iterator[Problem]:
        """Add to each difference whether the file has changed here meanwhile."""
        if not found:
            return
        before = {shown(one.name): one for one in self._source}
        now = {
            shown(one.name): one
            for one in entries(self._here.ask("list", self._folder, name=self._name))
        }
        for one in found:
            if before.get(one.path) != now.get(one.path):
                yield Problem(path=one.path, why="it changed here while it was copied")
            else:
                yield one


class _Looked(NamedTuple):
    path: str
    kind: str
    folder: Folder
    device: str
    quotas: list[str]


def _look(machine: Machine, path: str, *, quotas: bool = False) -> _Looked:
    """Return what a path is; on this machine, the shell has replaced `~` already.

    Raises:
        TehoError: it cannot be looked at.
    """
    if not machine.host:
        path = os.path.abspath(path)  # noqa: PTH100 - the path may not be a text
    (found,) = machine.ask("look", path, quotas=quotas)
    folder = found["folder"] | {"path": shown(found["folder"]["path"])}
    folder["mounted_on"] = shown(folder["mounted_on"])
    return _Looked(
        path=found["path"],
        kind=found["kind"],
        folder=msgspec.convert(folder, Folder),
        device=found["device"],
        quotas=found["quotas"],
    )


def _system(folder: Folder) -> FileSystem:
    return FileSystem(
        kind=folder.file_system,
        mounted_on=folder.mounted_on,
        free_bytes=folder.free_bytes,
        free_files=folder.free_files if folder.total_files else None,
    )


def _amount(value: float, unit: str) -> str:
    return format_bytes(value) if unit else counted(int(value), "file")
