"""`teho list`: the runs that are recorded."""

from __future__ import annotations

import contextlib
import shutil
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from teho.cli import say
from teho.cli.tag import read_tags
from teho.errors import InputError, UnitError
from teho.units import counted, parse_duration

if TYPE_CHECKING:
    from teho.model.run import End, Run

__all__ = ["command"]


_NEWEST = 30
_ORDER_ERROR = timedelta(days=1)
"""Runs come in the order of their ids, and clocks of nodes differ."""
_HEADS = ("Run", "Began", "Time", "Ended", "Nodes", "Tasks", "GPUs", "Host", "User", "Command")
_RIGHT = frozenset({"Time", "Nodes", "Tasks", "GPUs"})
"""Columns that are aligned to the right."""
_OF_EXPERIMENTS = "compare"
"""Tag of the runs that `teho compare` and `teho scale` made."""


@click.command(
    epilog="""\b
Examples:
  teho list
  teho list --last 100 --since 7d
  teho list --since 2026-11-20
  teho list --tag dataset=cifar10
  teho list --format json | jq -r '.[].id'""",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N",
              help="The newest N.  [default: 30]")  # fmt: skip
@click.option("--since", metavar="TIME", help="Begun since: a date, or so long ago, such as 7d.")
@click.option("--tag", "tags", metavar="KEY=VALUE", multiple=True, callback=read_tags,
              help="Only with this tag.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True,
              help="All runs, also those that compare and scale made.")  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(
    last: int | None, since: str | None, tags: dict[str, str], *, show_all: bool, form: str
) -> None:
    """List the recorded runs, newest last.

    Text shows the newest 30, without the runs that `teho compare` and `teho scale` made. JSON has
    all, unless --last, --since or --tag limits it.
    """
    from teho.config.settings import load_settings
    from teho.store.index import newest_runs
    from teho.store.layout import runs_directory

    home = load_settings().home_directory
    limit = None if since is None else _time_of(since)
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
        if tags and not (run and all(run.tags.get(key) == value for key, value in tags.items())):
            continue
        if hides and run is not None and _OF_EXPERIMENTS in run.tags:
            hidden += 1
            continue
        if most is not None and len(runs) == most:
            is_more = True
            break
        runs.append((path, run))
    runs.reverse()
    if form == "json":
        import msgspec

        rows = [_row(path, run) for path, run in runs]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return
    if runs:
        _print(runs)
    elif tags:
        wanted = " and ".join(f"{key}={value}" for key, value in tags.items())
        click.echo(
            f"No run in {runs_directory(home)} has {wanted}. `teho list` shows all.", err=True
        )
    elif limit is not None:
        click.echo(f"No run in {runs_directory(home)} began since {since}.", err=True)
    elif not hidden:
        click.echo(
            f"No runs in {runs_directory(home)}. Record one with `teho run -- COMMAND`.", err=True
        )
    left_out = [
        *(["older runs"] if is_more and last is None else []),
        *([f"{counted(hidden, 'run')} that compare or scale made"] if hidden else []),
    ]
    if left_out:
        say(f"not shown: {' and '.join(left_out)}; `teho list --all` shows all")


def _time_of(text: str) -> datetime:
    """Return the time from which on runs are wanted.

    Raises:
        InputError: it is neither a date nor a length of time.
    """
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).astimezone()
    try:
        return datetime.now(timezone.utc) - timedelta(seconds=parse_duration(text, "--since"))
    except (UnitError, OverflowError):
        raise InputError(
            f"--since {text}", "a date such as 2026-11-20, or a length of time such as 7d"
        ) from None


def _row(path: Path, run: Run | None) -> dict[str, Any]:
    from teho.store.read import run_state

    if run is None:
        return {"id": path.name, "state": "damaged", "path": str(path)}
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
        "user": _owner(path),
        "command": list(run.command),
        "path": str(path),
    }


def _print(runs: list[tuple[Path, Run | None]]) -> None:
    import shlex

    from teho.units import format_duration

    rows = []
    for path, run in runs:
        row = _row(path, run)
        if run is None:
            rows.append((row["id"], "", "", "damaged", "", "", "", "", "", ""))
            continue
        began = run.started_at.astimezone().strftime("%Y-%m-%d %H:%M")
        elapsed = "" if row["elapsed_s"] is None else format_duration(row["elapsed_s"])
        # One is the rule, and says nothing.
        counts = (str(row[key]) if row[key] > 1 else "" for key in ("nodes", "tasks"))
        gpus, words = str(row["gpus"] or ""), shlex.join(run.command).replace("\n", " ")
        where = (row["host"], row["user"])
        rows.append(
            (row["id"], began, elapsed, _ending(row, run.end), *counts, gpus, *where, words)
        )
    zone = datetime.now().astimezone().tzname() or "local time"
    titles = [f"{head} ({zone})" if head == "Began" else head for head in _HEADS]
    shown = [i for i, head in enumerate(_HEADS) if _is_shown(head, [row[i] for row in rows])]
    widths = [max(len(title), *(len(row[i]) for row in rows)) for i, title in enumerate(titles)]
    room = shutil.get_terminal_size((10_000, 24)).columns if sys.stdout.isatty() else 10_000
    for cells in (titles, *rows):
        sides = [f"{cells[i]:{'>' if _HEADS[i] in _RIGHT else '<'}{widths[i]}}" for i in shown]
        line = "  ".join(sides).rstrip()
        click.echo(line if len(line) <= room else line[: room - 1] + "…")


def _is_shown(head: str, cells: list[str]) -> bool:
    """Return whether a column is needed: a count above 1, more than one host or user."""
    if head in {"Nodes", "Tasks"}:
        return any(cells)
    return head not in {"Host", "User"} or len(set(cells) - {""}) > 1


def _owner(path: Path) -> str:
    """Return whose recording it is: a name, or a number if the system knows none."""
    import pwd

    try:
        number = path.stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _ending(row: dict[str, Any], end: End | None) -> str:
    if end and end.on_purpose:
        return end.on_purpose
    if row["signal"] is not None:
        return f"signal {row['signal']}"
    if row["exit_code"] is not None:
        return "ok" if row["exit_code"] == 0 else f"exit {row['exit_code']}"
    if end and end.job_state:
        state = end.job_state.replace("_", " ")
        return "job went on" if state == "running" else f"job {state}"
    return str(row["state"])
