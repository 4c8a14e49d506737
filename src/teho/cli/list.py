"""`teho list`: the runs that are recorded."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from teho.model.run import Run

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
@click.option("--tag", "tags", metavar="KEY=VALUE", multiple=True, help="Only with this tag.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(last: int | None, tags: tuple[str, ...], form: str) -> None:
    """List the recorded runs, newest last."""
    from teho.config.settings import load_settings
    from teho.store.index import list_runs
    from teho.store.layout import runs_directory

    home = load_settings().home_directory
    runs = [
        (path, run)
        for path, run in list_runs(home)
        if not tags or (run and all(_has(run, tag) for tag in tags))
    ]
    runs = runs[-last:] if last else runs
    if form == "json":
        import msgspec

        rows = [_row(path, run) for path, run in runs]
        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    elif runs:
        _print(runs)
    else:
        click.echo(
            f"No runs in {runs_directory(home)}. Record one with `teho run -- COMMAND`.", err=True
        )


def _has(run: Run, tag: str) -> bool:
    key, _, value = tag.partition("=")
    return run.tags.get(key) == value


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
            rows.append((row["id"], "", "damaged", "", ""))
            continue
        elapsed = "" if row["elapsed_s"] is None else format_duration(row["elapsed_s"])
        ending = row["state"]
        if row["signal"] is not None:
            ending = f"signal {row['signal']}"
        elif row["exit_code"] is not None:
            ending = "ok" if row["exit_code"] == 0 else f"exit {row['exit_code']}"
        rows.append((row["id"], elapsed, ending, str(row["gpus"] or ""), shlex.join(run.command)))
    heads = ("Run", "Time", "Ended", "GPUs", "Command")
    widths = [max(len(head), *(len(row[i]) for row in rows)) for i, head in enumerate(heads[:-1])]
    room = shutil.get_terminal_size((10_000, 24)).columns if sys.stdout.isatty() else 10_000
    for line_cells in (heads, *rows):
        name, time, ending, gpus, command_line = line_cells
        cells = [
            f"{name:<{widths[0]}}", f"{time:>{widths[1]}}", f"{ending:<{widths[2]}}",
            f"{gpus:>{widths[3]}}", command_line.replace("\n", " "),
        ]  # fmt: skip
        line = "  ".join(cells).rstrip()
        click.echo(line if len(line) <= room else line[: room - 1] + "…")
