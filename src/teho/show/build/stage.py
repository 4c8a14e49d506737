"""The plan and the result of `teho stage` as a document."""

from __future__ import annotations

from collections.abc import Sequence

from teho.model.document import Document, Fact, Item, Listing, VerdictSeverity
from teho.model.staged import FileSystem, Problem, Staged
from teho.show.build.layout import column, listing, table
from teho.units import counted, format_bytes, format_duration
from teho.version import __version__

__all__ = ["stage_document"]

_MOST = 20
"""Files in a list of problems, without `--why`."""


def stage_document(staged: Staged) -> Document:
    """Lay out what is copied, the file systems, and the files with a problem."""
    severity, verdict = _verdict(staged)
    sides = (("Source", staged.source_system), ("Destination", staged.destination_system))
    return Document(
        title=f"teho stage · {staged.source}",
        verdict=verdict,
        verdict_severity=severity,
        facts=(
            Fact("source", "From", staged.source),
            Fact("destination", "to", _to(staged)),
            Fact("files", "Files", staged.file_count),
            Fact("links", "Links", staged.link_count or None),
            Fact("folders", "Folders", staged.folder_count or None),
            Fact("bytes", "Size", staged.total_bytes, "bytes"),
            Fact("mean_bytes", "Mean size", staged.mean_bytes, "bytes"),
            Fact("copy_bytes", "To copy" if staged.state == "planned" else "Copied",
                 staged.copy_bytes, "bytes", note=_to_copy(staged)),
            Fact("quota_bytes", "Quota allows", staged.quota_bytes, "bytes", note=_files(staged)),
            Fact("elapsed_s", "Took", staged.elapsed_s, "s"),
        ),
        findings=staged.findings,
        tables=(
            table(
                "file_systems",
                "File systems",
                sides,
                column("side", "Side", lambda one: one[0]),
                column("kind", "File system", lambda one: one[1].kind or "unknown"),
                column("mounted_on", "Mounted on", lambda one: one[1].mounted_on),
                column("free_bytes", "Free", lambda one: one[1].free_bytes, unit="bytes"),
                column("free_files", "Free inodes", _free_files),
            ),
        ),
        lists=(
            *_problems("differences", "Different at the destination", staged.differences),
            *_problems("conflicts", "Not changed at the destination", staged.conflicts),
            *_problems("unreadable", "Cannot be read in the source", staged.unreadable),
            *_problems(
                "skipped",
                "Special files that are not copied",
                staged.skipped,
                "remark",
            ),
            listing("messages", "Messages of rsync", staged.messages, "why"),
        ),
        commands=staged.commands,
        teho_version=__version__,
    )  # fmt: skip


def _files(staged: Staged) -> str:
    if staged.quota_files is None:
        return ""
    return _counted(staged.quota_files, "more file")


def _free_files(side: tuple[str, FileSystem]) -> int | None:
    return side[1].free_files


def _to(staged: Staged) -> str:
    return f"{staged.host}:{staged.destination}" if staged.host else staged.destination


def _to_copy(staged: Staged) -> str:
    if staged.is_archive:
        return "as one archive"
    return _copies(staged) or "nothing"


def _copies(staged: Staged) -> str:
    """Return how many files and links are copied; empty if none."""
    files = [_counted(staged.copy_count, "file")] * bool(staged.copy_count)
    links = [_counted(staged.copy_link_count, "link")] * bool(staged.copy_link_count)
    return " and ".join(files + links)


def _verdict(staged: Staged) -> tuple[VerdictSeverity, str]:
    many = _counted(staged.file_count, "file")
    size = format_bytes(staged.total_bytes)
    to = _to(staged)
    are = "is" if staged.file_count == 1 else "are"
    stays = (
        f" {_counted(len(staged.conflicts), 'file')} of yours at the destination will not be "
        "changed."
    )
    if staged.state == "planned":
        kept = stays if staged.conflicts else ""
        if not _copies(staged):
            all_there = f"Nothing to copy: {many} ({size}) {are} already in {to}."
            return ("warning", f"Nothing to copy.{kept}") if kept else ("good", all_there)
        if staged.is_archive:
            verdict = f"{many} ({size}) will be packed into {to}."
        else:
            verdict = (
                f"{_copies(staged)} ({format_bytes(staged.copy_bytes)}) will be copied to {to}."
            )
        return ("warning" if kept or staged.unreadable else "good"), f"{verdict}{kept}"
    if staged.state == "different":
        bad = len(staged.differences) + len(staged.conflicts) + len(staged.unreadable)
        what = "this archive" if staged.is_archive else "these files"
        again = (
            f" Do not use this copy: delete {what} at the destination, and run the same command "
            "again."
        )
        return "critical", (
            f"{_counted(bad, 'file')} in {to} {'differs' if bad == 1 else 'differ'} from the "
            f"source.{again if staged.differences else ''}"
        )
    took = (
        f" The copy took {format_duration(staged.elapsed_s)}."
        if staged.elapsed_s is not None
        else ""
    )
    sums = f" and the checksums of {_counted(staged.checksum_count, 'file')}"
    agree = (
        f"All sizes{sums if staged.checksum_count else ''} are the same in the source and in the "
        "copy."
    )
    done = f"{many} ({size}) {are} now in {to}.{took}"
    return "good", f"{done} {agree}"


def _counted(number: int, noun: str) -> str:
    return counted(number, noun).replace(str(number), f"{number:,}", 1)


def _problems(
    key: str, title: str, problems: Sequence[Problem], severity: str = "critical"
) -> list[Listing]:
    """List the first problems; the others are shown with `--why`."""
    items = [
        Item(lead=one.path, text=one.why, severity=severity)  # type: ignore[arg-type]
        for one in problems
    ]
    if len(items) <= _MOST:
        return [listing(key, title, items)] if items else []
    rest = Item(
        text=f"and {len(items) - _MOST:,} more: `--why` or `--format json` shows the whole list"
    )
    return [
        listing(key, title, [*items[:_MOST], rest]),
        listing(f"{key}_rest", f"{title}: the other items", items[_MOST:], "why"),
    ]
