"""One copy with `teho stage`: plan it, do it, check it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from teho.errors import InputError
from teho.model.finding import Finding, Threshold
from teho.model.staged import Problem, Staged
from teho.stage import copy, verify
from teho.stage.archive import Archive
from teho.stage.findings import many_small_files, over_quota, quotas_of
from teho.stage.location import location_of
from teho.stage.machine import Machine, Place, shown
from teho.stage.plan import (
    Entry,
    Plan,
    differences,
    entries,
    is_many_small,
    plan_copy,
)
from teho.stage.side import PART
from teho.store.staged import load_staged, save_staged
from teho.units import counted, format_bytes

__all__ = ["Progress", "Staging", "Wanted"]

Progress = Callable[[str, int, int], None]
"""Called with the present step, the bytes that are done, and all bytes."""


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
        self._source_place = location_of(here, wanted.source)
        self._folder, self._name = os.path.split(self._source_place.path)
        self._check_source()
        self._place = location_of(there, wanted.destination.path, quotas=True)
        self._check_destination()
        self._source = entries(self._list_here())
        self._target_name = f"{self._name}.tar" if self.is_archive else self._name
        self._target = os.path.join(self._place.path, self._target_name)  # noqa: PTH118 - not only here
        self._copy_key = f"{self._source_place.path}\0{there.host}\0{self._target}"
        self._staged = load_staged(home, self._copy_key)
        self.plan: Plan = plan_copy(self._expected, self._list_there(), self._staged)
        if self.is_archive:
            packed = plan_copy(self._source, (), {})
            self.plan = self.plan._replace(skipped=packed.skipped, unreadable=packed.unreadable)

    def _check_source(self) -> None:
        source = self._source_place
        if source.kind not in {"f", "d"}:
            found = "no such file or folder" if not source.kind else f"it is {source.kind}"
            raise InputError(f"{shown(self._wanted.source)}: {found}", "a file or a folder")
        if not self._name:
            raise InputError("SRC is /", "a folder below /")

    def _check_destination(self) -> None:
        source, place = self._source_place, self._place
        to = str(self._wanted.destination)
        if place.kind not in {"", "d"}:
            raise InputError(f"{to} is a file", "a folder in which to make the copy")
        if not self._there.host and f"{place.path}/".startswith(f"{source.path}/"):
            raise InputError(f"{to} is inside {shown(source.path)}", "a folder outside of SRC")
        if not self._there.host and place.path == self._folder:
            raise InputError(
                f"{to} is the folder that contains {shown(self._name)}", "another folder as DEST"
            )
        if not place.folder.is_writable:
            raise InputError(
                f"{to}: you cannot write to {shown(place.folder.path)}", "a folder that you can use"
            )

    def _list_here(self) -> list[Any]:
        return self._here.ask("list", self._folder, name=self._name)

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
        plan, quotas = self.plan, quotas_of(self._place)
        of_bytes = [one.limit_bytes - one.used_bytes for one in quotas if one.limit_bytes]
        of_files = [one.limit_files - one.used_files for one in quotas if one.limit_files]
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
            source_system=self._source_place.system,
            destination_system=self._place.system,
            quota_bytes=max(0, min(of_bytes)) if of_bytes else None,
            quota_files=max(0, min(of_files)) if of_files else None,
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
            yield many_small_files(
                len(self._files), self._total_bytes, self._place.folder.file_system,
                (self._many, self._small), is_archive=self.is_archive,
            )  # fmt: skip
        yield from over_quota(self._place, self.plan.copy_bytes, len(self.plan.to_copy))

    def _commands(self) -> tuple[str, ...]:
        path = shlex.quote(shown(self._target))
        where = f" on {self._there.host}" if self._there.host else ""
        submit = f"`teho submit --stage {path} -- python train.py`"
        return (
            f"To unpack the archive on each node at the start of a job{where}: {submit}",
            f'To unpack the archive in your own job script: `tar -xf {path} -C "$TMPDIR"`',
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
                f"{where} has room for only {counted(folder.free_files, 'more file')}",
                f"room for {len(self.plan.new):,} files",
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
        # The file that rsync is writing: if it is killed, no other file name is left behind.
        unfinished = f"{self._place.path.rstrip('/')}/.{self._target_name}{PART}"
        self._there.ask("make", self._place.path if self.is_archive else unfinished)
        # Before the copy: an interrupted copy knows its files. Those that will be replaced are
        # recorded as they are until they have been replaced.
        self._record(self.plan.new)
        messages: list[str] = []
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
                messages += copy.copy_files(
                    part, self._folder, self._there, self._place.path, unfinished, show,
                    replace=replace,
                )  # fmt: skip
            done += sum(one.size for one in part)
        if not self.is_archive:
            self._there.ask("clean", unfinished)
        self._record(self.plan.newer)
        return messages

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
        found = self._changed(differences(wanted, self._list_there()))
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
        if archived:
            chosen = {part.name for part in parts}
            headers = self._archive.headers()
            if self._wanted.checksums is not None:
                headers = [header for header in headers if header[0] in chosen]
            there = (self._there, self._place.path)
            found += verify.compare_headers(headers, there, self._target_name)
        return self._described(
            "copied",
            differences=tuple(found),
            checked_count=len(wanted),
            checksum_count=len(parts),
            messages=tuple(messages),
            elapsed_s=elapsed_s,
        )

    def _changed(self, found: list[Problem]) -> list[Problem]:
        """Return the differences, with those of files that have changed here meanwhile."""
        if self._started_s is None:
            return found
        now = {one.name: one for one in entries(self._list_here())}
        changed = [
            shown(one.name)
            for one in self._source
            if one.kind in {"f", "l"} and now.get(one.name) != one
        ]
        why = "the file in the source changed while Teho copied it"
        return [
            *(one for one in found if one.path not in changed),
            *(Problem(path=name, why=why) for name in changed),
        ]
