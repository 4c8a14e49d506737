"""`teho export`: write recordings in the formats of other tools."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.complete import complete_run
from teho.cli.declare import first_given, flag, option, plain_command
from teho.cli.folder import make_folder
from teho.errors import InputError
from teho.units import parse_duration

if TYPE_CHECKING:
    from teho.jobs.export.openmetrics import Recorded
    from teho.jobs.http import Store

__all__ = ["command"]

_SENT = ("remote-write", "victoriametrics", "otlp")
"""Formats that are sent to a store."""
_FOLDER = "`-o FOLDER`"


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
    "Write to this file, or for parquet and grafana into this folder.",
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
    or last. Without RUN, Teho exports the newest run. parquet writes two files for each run into a
    folder, which may have the files of other users too, and which DuckDB and Spark read as one
    table. A run that has not changed is not written again. openmetrics writes a text for promtool,
    which makes blocks of Prometheus out of it. js1 writes the summary that Jobstats stores in
    Slurm's AdminComment, one line for each run.

    remote-write, victoriametrics and otlp send the values to a store. If the store does not answer
    or the command is ended, the next call continues after the last values that the store has.

    grafana writes dashboards for these series into the folder of -o. It takes no RUN.

    Reads: the recordings, and the file of the setting monitoring_token_file.

    Writes: the -o file or folder. For a store, what it has, in TEHO_HOME/exports.

    Network: used only for a store: the address of --store.
    """
    if every and runs:
        raise InputError("--all cannot be used together with RUN", "one of them")
    is_sent = form in _SENT
    if not is_sent and (given := first_given({"address", "wait"})):
        raise InputError(f"{given} cannot be used with --to {form}", f"--to {', '.join(_SENT)}")
    if path is not None and is_sent:
        raise InputError(f"-o cannot be used with --to {form}", "--store ADDRESS")
    problems: list[str] = []
    if form == "grafana":
        if runs or every:
            raise InputError(
                f"{'--all' if every else 'RUN'} cannot be used with --to grafana: the dashboards "
                "are the same for all runs",
                next_step="leave it out",
            )
        _dashboards(_given(path, form))
    elif form == "parquet":
        folder = _given(path, form)
        _parquet(list(_recordings(runs, every=every)), folder, problems)
    elif is_sent:
        store, wait_s = _store(form, address), parse_duration(wait, "--wait")
        _send(list(_recordings(runs, every=every)), form, store, wait_s, problems)
    else:
        _refuse_folder(path, form)
        recordings = _recordings(runs, every=every)
        text = _openmetrics if form == "openmetrics" else _js1
        _write(text(list(recordings), problems), path)
    for problem in dict.fromkeys(problems):
        say(problem)
    if problems:
        sys.stdout.flush()
        raise click.exceptions.Exit(2)


def _recordings(runs: tuple[str, ...], *, every: bool) -> Iterator[Recorded]:
    from teho.config.settings import load_settings
    from teho.jobs.export.openmetrics import Recorded
    from teho.store.index import find_run, list_runs
    from teho.store.owner import owner_of
    from teho.store.read import read_run

    home = load_settings().home_directory
    if every:
        for directory, run in list_runs(home):
            if run is None:
                say(f"{directory} cannot be read and is left out")
            else:
                yield Recorded(run, directory, owner_of(directory))
        return
    for directory in dict.fromkeys(find_run(one, home) for one in runs or ("last",)):
        if not runs:
            say(f"no RUN was given: the newest run, {directory.name}, is exported")
        yield Recorded(read_run(directory), directory, owner_of(directory))


def _given(path: Path | None, form: str) -> Path:
    """Return the folder of -o."""
    if path is None:
        raise InputError(f"--to {form} without -o", "a folder", _FOLDER)
    return path


def _refuse_folder(path: Path | None, form: str) -> None:
    if path is not None and os.path.isdir(path):  # noqa: PTH112 - no error if it cannot be read
        raise InputError(f"-o {path} is a folder", "a file", f"`-o {path / form}.txt`")


def _parquet(recordings: list[Recorded], folder: Path, problems: list[str]) -> None:
    from teho.jobs.export.parquet import export_parquet

    make_folder(folder, _FOLDER)
    try:
        written = sum(
            export_parquet(one.run, one.directory, one.owner, folder, problems)
            for one in recordings
        )
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: {error.strerror or ' '.join(str(error).split())}",
            "a folder that can be written",
            _FOLDER,
        ) from error
    unchanged = "" if written == len(recordings) else "; the others have not changed"
    say(f"wrote {written} of {len(recordings)} runs to {folder}{unchanged}")


def _dashboards(folder: Path) -> None:
    from teho.jobs.export.dashboards import dashboard_json, dashboards

    make_folder(folder, _FOLDER)
    for name in dashboards():
        _write(iter([dashboard_json(name)]), folder / f"teho-{name}.json")


def _store(form: str, address: str | None) -> Store:
    """Return the store of --store, or of the settings."""
    from teho.cli.token_file import chosen_store
    from teho.config.settings import load_settings

    if address is not None and not address.strip():
        raise InputError("--store is empty", "an address such as https://metrics.example.org")
    store = chosen_store(load_settings(), address or "")
    if store is None:
        raise InputError(
            f"--to {form} without --store", "`--store https://metrics.example.org`, or the setting "
            "monitoring"
        )  # fmt: skip
    return store


def _send(
    recordings: list[Recorded], form: str, store: Store, wait_s: float, problems: list[str]
) -> None:
    from teho.cli.progress import hint_if_slow
    from teho.config.settings import load_settings
    from teho.jobs.export.push import push
    from teho.units import counted

    home = load_settings().home_directory
    with hint_if_slow(f"sending to {store.host}…"):
        done = push(recordings, store, form, home, wait_s, problems, say)
    rest = len(recordings) - done.runs
    has = f"; {store.host} already had all values of {counted(rest, 'run')}" if rest else ""
    say(f"sent {done.values:,} values of {counted(done.runs, 'run')} to {store.host}{has}")


def _openmetrics(recordings: list[Recorded], problems: list[str]) -> Iterator[str]:
    from teho.jobs.export.openmetrics import openmetrics

    return openmetrics(recordings, problems)


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
    try:
        # A device or a pipe, such as /dev/stdout, is not replaced.
        is_file = path.is_file() or not path.exists()
        target = path.with_name(f".{path.name}.part") if is_file else path
        try:
            with target.open("w", encoding="utf-8") as file:
                file.writelines(lines)
            if is_file:
                target.replace(path)
        finally:
            if is_file:
                with contextlib.suppress(OSError):
                    target.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "a file that can be written") from error
    say(f"wrote {path}")
