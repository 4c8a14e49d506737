"""`teho list`: the recordings of this user."""

from __future__ import annotations

import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from teho.cli import say
from teho.cli.declare import flag, option, plain_command
from teho.cli.selection import earliest
from teho.cli.tag import read_tags
from teho.cli.terminal import print_json
from teho.errors import NewerFormatError, RecordingError, UnreadableError
from teho.units import counted

if TYPE_CHECKING:
    from teho.model.run import Run

__all__ = ["command"]

_NEWEST = 30
_ORDER_ERROR = timedelta(days=1)
"""Recordings are in the order of their ids, and the clocks of nodes differ."""
_HEADS = (
    "Run", "Began", "Time", "Ended", "Nodes", "Tasks", "GPUs", "Verdict", "Host", "User",
    "Command",
)  # fmt: skip
_RIGHT = frozenset({"Time", "Nodes", "Tasks", "GPUs"})
"""Columns that are aligned to the right."""
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
@option("--format", "Print text or JSON.", into="form", type=click.Choice(["text", "json"]),
        default="text")  # fmt: skip
def command(
    last: int | None, since: str | None, tags: dict[str, str], *, show_all: bool, form: str
) -> None:
    """List the recorded runs, newest last.

    Text shows the newest 30 runs, without the runs of `teho compare` and `teho scale`. JSON has all
    runs, unless --last, --since or --tag limits them. The verdict of a run is the first finding of
    its report. A list of more than 30 runs has no verdicts.

    Reads: the recordings in TEHO_HOME.

    Writes: only a cache, ~/.cache/teho/index.sqlite, or teho/index.sqlite in XDG_CACHE_HOME.

    Network: not used.
    """
    from teho.config.settings import load_settings
    from teho.store.index import newest_runs
    from teho.store.layout import runs_directory

    home = load_settings().home_directory
    limit = None if since is None else earliest(since)
    hides = form == "text" and not (show_all or tags)
    most = last or (_NEWEST if form == "text" and not show_all else None)
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
    rows = [_row(path, run) for path, run in runs]
    if form == "json":
        print_json(rows)
        return
    place = runs_directory(home)
    if runs:
        _print(runs, rows)
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


def _row(path: Path, run: Run | None) -> dict[str, Any]:
    from teho.store.owner import owner_of
    from teho.store.read import run_state

    if run is None:
        return {"id": path.name, "state": _why_unread(path), "path": str(path)}
    end = run.end
    return {
        "id": run.id,
        "name": run.name,
        "state": run_state(run, path).value,
        "started_at": run.started_at.isoformat(),
        "elapsed_s": end.elapsed_s if end else None,
        "exit_code": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "nodes": max(len(run.nodes), len(run.step.hosts) if run.step else 0),
        "tasks": run.step.task_count if run.step else 1,
        "gpus": sum(len(node.devices) for node in run.nodes),
        "tags": run.tags,
        "host": run.host,
        "user": owner_of(path),
        "command": list(run.command),
        "path": str(path),
    }


def _why_unread(path: Path) -> str:
    """Return `newer`, `unreadable` or `damaged`."""
    from teho.store.read import read_run

    try:
        read_run(path)
    except RecordingError as error:
        known = {NewerFormatError: "newer", UnreadableError: "unreadable"}
        return known.get(type(error), "damaged")
    return "damaged"


def _print(runs: list[tuple[Path, Run | None]], rows: list[dict[str, Any]]) -> None:
    verdicts = _verdicts(runs) if len(runs) <= _NEWEST else [""] * len(runs)
    table = [
        _cells(row, run, verdict)
        for row, (_, run), verdict in zip(rows, runs, verdicts, strict=True)
    ]
    zone = datetime.now().astimezone().tzname() or "local time"
    titles = [f"{head} ({zone})" if head == "Began" else head for head in _HEADS]
    shown = [i for i, head in enumerate(_HEADS) if _is_shown(head, [row[i] for row in table])]
    widths = [max(len(title), *(len(row[i]) for row in table)) for i, title in enumerate(titles)]
    room = shutil.get_terminal_size((10_000, 24)).columns if sys.stdout.isatty() else 10_000
    for cells in (titles, *table):
        sides = [f"{cells[i]:{'>' if _HEADS[i] in _RIGHT else '<'}{widths[i]}}" for i in shown]
        line = "  ".join(sides).rstrip()
        click.echo(line if len(line) <= room else line[: room - 1] + "…")


def _cells(row: dict[str, Any], run: Run | None, verdict: str) -> list[str]:
    import shlex

    from teho.units import format_duration

    if run is None:
        return [row["id"], "", "", row["state"], *[""] * (len(_HEADS) - 4)]
    return [
        row["id"],
        run.started_at.astimezone().strftime("%Y-%m-%d %H:%M"),
        "" if row["elapsed_s"] is None else format_duration(row["elapsed_s"]),
        "imported" if run.imported else _ending(row, run),
        # 1 is the usual number, and not shown.
        *(str(row[key]) if row[key] > 1 else "" for key in ("nodes", "tasks")),
        str(row["gpus"] or ""),
        verdict,
        row["host"],
        row["user"],
        _log(run) if run.imported else shlex.join(run.command).replace("\n", " "),
    ]


def _log(run: Run) -> str:
    """Return the logs from which a run was imported."""
    return f"({', '.join(run.imported.files)})" if run.imported else ""


def _is_shown(head: str, cells: list[str]) -> bool:
    """Return whether a column is needed: a count above 1, or several hosts or users."""
    if head in {"Verdict", "Nodes", "Tasks"}:
        return any(cells)
    return head not in {"Host", "User"} or len(set(cells) - {""}) > 1


def _verdicts(runs: list[tuple[Path, Run | None]]) -> list[str]:
    from teho.config.settings import load_settings
    from teho.show.judged import judge_of, judged
    from teho.store.index import verdicts_of

    settings = load_settings()
    described = dict(runs)
    found = verdicts_of(
        settings.home_directory,
        described,
        judge_of(settings.thresholds),
        lambda path: judged(path, settings, described[path]),
    )
    return [one.words for one in found]


def _ending(row: dict[str, Any], run: Run) -> str:
    end = run.end
    if end and end.on_purpose:
        return end.on_purpose
    if row["signal"] is not None:
        return f"signal {row['signal']}"
    if row["exit_code"] is not None:
        return "ok" if row["exit_code"] == 0 else f"exit {row['exit_code']}"
    if end and end.job_state:
        state = end.job_state.replace("_", " ")
        return "job still running" if state == "running" else f"job {state}"
    # The recorder of `teho always` is ended with its job; the accounting knows how the job ended.
    is_over = run.unasked and row["state"] == "interrupted"
    return "job ended" if is_over else str(row["state"])
