"""`teho list`: the runs that are recorded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from teho.cli.tag import read_tags

if TYPE_CHECKING:
    from teho.model.run import End, Run

__all__ = ["command"]


@click.command(
    epilog="""\b
Examples:
  teho list
  teho list --last 5
  teho list --tag dataset=cifar10
  teho list --format json | jq -r '.[].id'""",
)
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N.")
@click.option("--tag", "tags", metavar="KEY=VALUE", multiple=True, callback=read_tags,
              help="Only with this tag.")  # fmt: skip
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(last: int | None, tags: dict[str, str], form: str) -> None:
    """List the recorded runs, newest last."""
    from teho.config.settings import load_settings
    from teho.store.index import list_runs
    from teho.store.layout import runs_directory

    home = load_settings().home_directory
    runs = [
        (path, run)
        for path, run in list_runs(home)
        if not tags or (run and all(run.tags.get(key) == value for key, value in tags.items()))
    ]
    runs = runs[-last:] if last else runs
    if form == "json":
        import msgspec

        rows = [_row(path, run) for path, run in runs]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    elif runs:
        _print(runs)
    elif tags:
        wanted = " and ".join(f"{key}={value}" for key, value in tags.items())
        click.echo(
            f"No run in {runs_directory(home)} has {wanted}. `teho list` shows all.", err=True
        )
    else:
        click.echo(
            f"No runs in {runs_directory(home)}. Record one with `teho run -- COMMAND`.", err=True
        )


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
            rows.append((row["id"], "", "damaged", "", "", "", ""))
            continue
        elapsed = "" if row["elapsed_s"] is None else format_duration(row["elapsed_s"])
        # One is the rule, and says nothing.
        counts = (str(row[key]) if row[key] > 1 else "" for key in ("nodes", "tasks"))
        gpus, words = str(row["gpus"] or ""), shlex.join(run.command).replace("\n", " ")
        rows.append((row["id"], elapsed, _ending(row, run.end), *counts, gpus, words))
    heads = ("Run", "Time", "Ended", "Nodes", "Tasks", "GPUs", "Command")
    shown = [i for i in range(7) if i not in {3, 4} or any(row[i] for row in rows)]
    widths = [max(len(head), *(len(row[i]) for row in rows)) for i, head in enumerate(heads)]
    room = shutil.get_terminal_size((10_000, 24)).columns if sys.stdout.isatty() else 10_000
    for cells in (heads, *rows):
        sides = [
            cells[i] if i == 6 else f"{cells[i]:{'<' if i in {0, 2} else '>'}{widths[i]}}"
            for i in shown
        ]
        line = "  ".join(sides).rstrip()
        click.echo(line if len(line) <= room else line[: room - 1] + "…")


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
