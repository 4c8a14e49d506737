"""`teho list`: the recordings of this user."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import flag, option, plain_command
from teho.cli.output import Output, output_options
from teho.cli.run_table import MOST_JUDGED, RunTable, run_row
from teho.cli.selection import earliest
from teho.cli.tag import read_tags
from teho.units import counted

if TYPE_CHECKING:
    from teho.model.run import Run

__all__ = ["command"]

_ORDER_ERROR = timedelta(days=1)
"""Recordings are in the order of their ids, and the clocks of nodes differ."""
_EXPERIMENT_TAG = "compare"
"""Tag of the runs that `teho compare` and `teho scale` made."""


@plain_command("""\
  teho list
  teho list --last 100 --since 7d
  teho list --since 2026-11-20
  teho list --tag dataset=cifar10
  teho list --format json | jq -r '.[].id'""")
@option("--last N", "Show at most the newest N runs.", unset="30", type=click.IntRange(min=1))
@option("--since TIME", "Show only runs that began on this date or later; 7d: in the last 7 days.",
        unset="all")  # fmt: skip
@option("--tag KEY=VALUE", "Show only runs with this tag; may be repeated.", unset="all",
        into="tags", multiple=True, callback=read_tags)  # fmt: skip
@flag("--all", "Show all runs, also the runs of `teho compare` and `teho scale`.", into="show_all")
@output_options()
def command(
    last: int | None, since: str | None, tags: dict[str, str], *, show_all: bool, output: Output
) -> None:
    """List the recorded runs, newest last.

    Text and HTML show the newest 30 runs, without the runs of `teho compare` and `teho scale`. JSON
    has all runs, unless --last, --since or --tag limits them. The verdict of a run is the first
    finding of its report. A list of more than 30 runs has no verdicts. --short counts the verdicts.
    --why shows all columns, and does not shorten them.

    Reads: the recordings in TEHO_HOME.

    Writes: only a cache, ~/.cache/teho/index.sqlite, or teho/index.sqlite in XDG_CACHE_HOME.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.store.index import newest_runs
    from teho.store.layout import runs_directory

    home = load_settings().home_directory
    limit = None if since is None else earliest(since)
    is_json = output.form == "json"
    hides = not (is_json or show_all or tags)
    most = last or (None if is_json or show_all else MOST_JUDGED)
    runs: list[tuple[Path, Run | None]] = []
    is_more = False
    hidden = 0
    for path, run in newest_runs(home):
        if limit is not None and run is not None and run.started_at < limit:
            if run.started_at < limit - _ORDER_ERROR:
                break
            continue
        if tags and not (run and tags.items() <= run.tags.items()):
            continue
        if hides and run is not None and _EXPERIMENT_TAG in run.tags:
            hidden += 1
            continue
        if most is not None and len(runs) == most:
            is_more = True
            break
        runs.append((path, run))
    runs.reverse()
    if is_json:
        import msgspec

        rows = msgspec.json.encode([run_row(path, run) for path, run in runs])
        output.write(f"{msgspec.json.format(rows, indent=2).decode()}\n")
        return
    place = runs_directory(home)
    if runs:
        _show(runs, output)
    elif tags:
        wanted = " and ".join(f"{key}={value}" for key, value in tags.items())
        which = f"the tag{'s' * (len(tags) > 1)} {wanted}"
        click.echo(f"No run in {place} has {which}. `teho list` shows all runs.", err=True)
    elif limit is not None:
        click.echo(f"No run in {place} matches --since {since}.", err=True)
    elif not hidden:
        click.echo(f"No runs in {place}. Record one with `teho run -- COMMAND`.", err=True)
    left_out = ["older runs"] * (is_more and last is None)
    if hidden:
        left_out.append(f"{counted(hidden, 'run')} of `teho compare` or `teho scale`")
    if left_out:
        say(f"not shown: {' and '.join(left_out)}; `teho list --all` shows all runs")


def _show(runs: list[tuple[Path, Run | None]], output: Output) -> None:
    table = RunTable(runs, is_full=output.detail == "why")
    if output.form == "html":
        from teho.show.build.run_list import run_list_document

        output.show(run_list_document(_counts(table), table.titles, table.rows))
    elif output.detail == "short":
        output.write(f"{_counts(table)}\n")
    else:
        is_cut = output.path is None and output.detail == "default" and sys.stdout.isatty()
        room = shutil.get_terminal_size().columns if is_cut else None
        output.write("".join(f"{line}\n" for line in table.lines(room)))


def _counts(table: RunTable) -> str:
    """Return the number of runs, and of each verdict."""
    verdicts = Counter(filter(None, table.verdicts)).most_common()
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts)
    return f"{counted(len(table.rows), 'run')}{f': {counts}' if counts else ''}"
