"""`teho export`: write recordings in the formats of other tools."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import flag, option, plain_command
from teho.errors import InputError

if TYPE_CHECKING:
    from teho.jobs.export.openmetrics import Recorded

__all__ = ["command"]


@plain_command("""\
  teho export last --to openmetrics -o metrics.txt
  teho export --all --to parquet -o /scratch/project_2001234/teho
  teho export 4711 --to js1
  teho export --all --to victoriametrics --store https://metrics.example.org""")
@click.argument("runs", metavar="[RUN…]", nargs=-1, shell_complete=complete_run)
@option(
    "--to",
    "Write this format.",
    into="form",
    required=True,
    type=click.Choice(
        ["parquet", "openmetrics", "js1", "remote-write", "victoriametrics", "otlp", "grafana"]
    ),
)
@flag("--all", "Export all recordings of TEHO_HOME.", into="every")
@option(
    "-o --output PATH",
    "Write to this file, or for parquet into this folder.",
    into="path",
    type=click.Path(path_type=Path),
    unset="standard output",
)
@option("--store ADDRESS", "Send to this store.", into="address", unset="the setting monitoring")
@option("--wait TIME", "Try again for this time if the store does not answer.", default="1min")
def command(
    runs: tuple[str, ...],
    form: str,
    every: bool,
    path: Path | None,
    address: str | None,
    wait: str,
) -> None:
    """Write recordings in the formats of other tools.

    RUN is the id of a run, the first characters of this id, the id of a job, a name, a directory,
    or last. parquet writes two files for each run into a folder, which may have the files of other
    users too, and which DuckDB and Spark read as one table. A run that has not changed is not
    written again. openmetrics writes a text for promtool, which makes blocks of Prometheus out of
    it. js1 writes the summary that Jobstats stores in Slurm's AdminComment, one line for each run.

    remote-write, victoriametrics and otlp send the values to a store. If the store does not answer
    or the command is ended, the next call continues after the last values that the store has.

    grafana writes dashboards for these series into the folder of -o. It needs no RUN.

    Reads: the recordings, and the file of the setting monitoring_token_file.

    Writes: the -o file or folder. For a store, what it has, in TEHO_HOME/exports.

    Network: used only for a store: the address of --store.
    """
    if every and runs:
        raise InputError("--all cannot be used together with RUN", "one of them")
    is_sent = form in {"remote-write", "victoriametrics", "otlp"}
    if address and not is_sent:
        raise InputError(f"--store cannot be used with --to {form}", "-o PATH")
    if path and is_sent:
        raise InputError(f"-o cannot be used with --to {form}", "--store ADDRESS")
    if form == "grafana":
        _dashboards(path)
        return
    problems: list[str] = []
    recordings = list(_recordings(runs or ("last",), every=every))
    if form == "parquet":
        _parquet(recordings, path, problems)
    elif is_sent:
        _send(recordings, form, address, wait, problems)
    elif form == "openmetrics":
        from teho.jobs.export.openmetrics import openmetrics

        _write(openmetrics(recordings, problems), path)
    else:
        _write(_js1(recordings, problems), path)
    for problem in dict.fromkeys(problems):
        say(problem)
    if problems:
        sys.stdout.flush()
        raise click.exceptions.Exit(2)


def _recordings(references: tuple[str, ...], *, every: bool) -> Iterator[Recorded]:
    from teho.cli.owner import owner_of
    from teho.config.settings import load_settings
    from teho.jobs.export.openmetrics import Recorded
    from teho.store.index import find_run, list_runs
    from teho.store.read import read_run

    home = load_settings().home_directory
    if every:
        for directory, run in list_runs(home):
            if run is None:
                say(f"{directory} cannot be read and is left out")
            else:
                yield Recorded(run, directory, owner_of(directory))
        return
    for directory in dict.fromkeys(find_run(one, home) for one in references):
        yield Recorded(read_run(directory), directory, owner_of(directory))


def _parquet(recordings: list[Recorded], path: Path | None, problems: list[str]) -> None:
    from teho.jobs.export.parquet import export_parquet

    if path is None:
        raise InputError("--to parquet without -o", "a folder", "`-o FOLDER`")
    written = sum(
        export_parquet(one.run, one.directory, one.owner, path, problems) for one in recordings
    )
    unchanged = "" if written == len(recordings) else "; the others have not changed"
    say(f"wrote {written} of {len(recordings)} runs to {path}{unchanged}")


def _dashboards(path: Path | None) -> None:
    from teho.jobs.export.dashboards import dashboard_json, dashboards

    if path is None:
        raise InputError("--to grafana without -o", "a folder", "`-o FOLDER`")
    path.mkdir(parents=True, exist_ok=True)
    for name in dashboards():
        _write(iter([dashboard_json(name)]), path / f"teho-{name}.json")


def _send(
    recordings: list[Recorded], form: str, address: str | None, wait: str, problems: list[str]
) -> None:
    from teho.cli.progress import hint_if_slow
    from teho.config.settings import load_settings
    from teho.jobs.export.push import push
    from teho.jobs.http import store_of
    from teho.units import counted, parse_duration

    settings = load_settings()
    store = store_of(settings, address or "")
    if store is None:
        raise InputError(
            f"--to {form} without --store", "`--store https://metrics.example.org`, or the setting "
            "monitoring"
        )  # fmt: skip
    wait_s = parse_duration(wait, "--wait")
    with hint_if_slow(f"sending to {store.host}…"):
        done = push(recordings, store, form, settings.home_directory, wait_s, problems)
    rest = len(recordings) - done.runs
    has = f"; {store.host} already had all values of {counted(rest, 'run')}" if rest else ""
    say(f"sent {done.values:,} values of {counted(done.runs, 'run')} to {store.host}{has}")


def _js1(recordings: list[Recorded], problems: list[str]) -> Iterator[str]:
    from teho.config.settings import load_settings
    from teho.jobs.js1 import encode_js1
    from teho.show.loaded import LoadedRun
    from teho.show.text.js1 import js1_of

    for one in recordings:
        loaded = LoadedRun(one.directory, load_settings(), one.run)
        yield f"{encode_js1(js1_of(loaded.summary))}\n"
        problems.extend(loaded.problems)


def _write(lines: Iterator[str], path: Path | None) -> None:
    """Write lines to a file, which is complete or absent, or to standard output."""
    if path is None:
        for line in lines:
            click.echo(line, nl=False)
        return
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(lines)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "a file that can be written") from error
    finally:
        temporary.unlink(missing_ok=True)
    say(f"wrote {path}")
