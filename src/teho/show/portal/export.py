"""The pages of the portal as files, for a web server that needs no programs.

The pages have no filter. Each report is one file that loads no other file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from teho.config.settings import Settings
from teho.errors import InputError, RecordingError
from teho.model.listed_run import ListedRun
from teho.patterns import lazy_pattern
from teho.show.html.page import render_html
from teho.show.loaded import LoadedRun
from teho.show.portal.languages import say
from teho.show.portal.recordings import Recordings
from teho.show.portal.render import asset, render
from teho.show.portal.rows import COLUMNS, known_columns, row_of
from teho.store.layout import is_run_id, open_private

__all__ = ["Exported", "export"]

_PAGE_ROWS = 200
_BATCH = 400
"""Runs that are read from the index at once: old versions of SQLite allow only 999 values."""
_LIST_PAGE = lazy_pattern(r"runs-\d+\.html")
_MARK = ".teho-export"
"""File that says that a folder was made by an export, and may be overwritten."""


class Exported(NamedTuple):
    """What an export has written."""

    pages: int
    left_out: tuple[str, ...]
    """Ids of the runs that have ended, but whose report cannot be computed."""


def export(settings: Settings, folder: Path) -> Exported:
    """Write the list and the report of every own run that has ended.

    Runs that other people share are left out: they did not agree to publish them. The pages of an
    earlier export are deleted if this export does not write them again, for example because the
    run was deleted.

    Args:
        settings: the user's settings.
        folder: where to write. It must be empty, or made by an earlier export.

    Raises:
        InputError: the folder has other files, or cannot be written.
    """
    recordings = Recordings(settings)
    recordings.refresh()
    runs = [run for run in _all_runs(recordings) if run.outcome != "running"]
    recordings.close()
    try:
        _prepare(folder)
        written = dict(_reports(settings, folder, runs))
        pages = {*written.values()}
        shown = [run for run in runs if run.id in written]
        for number, first in enumerate(range(0, max(1, len(shown)), _PAGE_ROWS)):
            part = shown[first : first + _PAGE_ROWS]
            has_more = first + _PAGE_ROWS < len(shown)
            name = _page_name(number)
            _write(folder / name, _list(part, written, number, more=has_more))
            pages.add(name)
        _write(folder / "style.css", (asset("style.css") or b"").decode())
        _delete_old(folder, pages)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: {error.strerror}", "a folder that you can write"
        ) from error
    return Exported(len(pages), tuple(run.id for run in runs if run.id not in written))


def _all_runs(recordings: Recordings) -> Iterator[ListedRun]:
    """Yield all own runs, newest first."""
    offset = 0
    with recordings.search() as search:
        while found := search.find(limit=_BATCH, offset=offset):
            yield from found
            offset += len(found)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / _MARK
    if any(folder.iterdir()) and not mark.exists():
        raise InputError(
            f"{folder} has files that Teho did not write",
            "an empty folder, or a folder of an earlier export",
            "give the name of a new folder",
        )
    mark.touch()


def _reports(settings: Settings, folder: Path, runs: list[ListedRun]) -> Iterator[tuple[str, str]]:
    """Write each report; yield the run and the name of the file."""
    for run in runs:
        try:
            page = render_html(LoadedRun(Path(run.directory), settings).view)
        except RecordingError:
            continue
        name = f"{run.id}.html"
        _write(folder / name, page)
        yield run.id, name


def _list(runs: list[ListedRun], files: dict[str, str], number: int, *, more: bool) -> str:
    rows = [row_of(run) for run in runs]
    return render(
        "export.html",
        {"has_search": False, "pages": []},
        title=say("Runs"),
        here="runs",
        rows=[(row, files[row.run.id]) for row in rows],
        columns=[(place, COLUMNS[place][1]) for place in known_columns(rows)],
        before=_page_name(number - 1) if number else "",
        after=_page_name(number + 1) if more else "",
    )


def _page_name(number: int) -> str:
    return f"runs-{number + 1}.html" if number else "index.html"


def _delete_old(folder: Path, pages: Collection[str]) -> None:
    """Delete the pages of an earlier export that this export did not write."""
    for path in folder.glob("*.html"):
        is_own = is_run_id(path.stem) or _LIST_PAGE.fullmatch(path.name)
        if is_own and path.name not in pages:
            path.unlink()


def _write(path: Path, text: str) -> None:
    """Write a file that a web server can read."""
    path.unlink(missing_ok=True)
    with os.fdopen(open_private(path, exclusive=True), "wb") as file:
        file.write(text.encode(errors="backslashreplace"))
    path.chmod(0o644)
