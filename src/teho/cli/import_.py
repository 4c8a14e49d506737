"""`teho import`: make a recording from a log of another program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import option, plain_command
from teho.errors import InputError

if TYPE_CHECKING:
    from teho.jobs.log import Source

__all__ = ["command"]


@plain_command("""\
  teho import gpu.csv
  teho import gpu.log --every 5s
  teho import gpu-*.csv --name baseline
  teho import dmon.txt --host g1101
  sacct -j 4711 -X -n -P -o AdminComment | teho import -
  teho report $(teho import gpu.csv)""")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@option("--every TIME", "Use this time between two samples of a GPU, if the log has no times.")
@option("--host NAME", "Use this host name for all samples.", unset="as in the log")
@option("--name NAME", "Name the recording.")
@option(
    "--columns LIST",
    "Use these names of columns, if nvidia-smi was called with noheader: the list after "
    "--query-gpu=.",
)
@option(
    "--gpus NUMBER",
    "Take the rows from this number of GPUs in turn, if no column names the GPU.",
    into="gpu_count",
    type=click.IntRange(1, 64),
)
@option("--as FORMAT", "Read the files in this format.", into="form", unset="found by the content")
def command(
    files: tuple[Path, ...],
    every: str | None,
    host: str | None,
    name: str | None,
    columns: str | None,
    gpu_count: int | None,
    form: str | None,
) -> None:
    """Make a recording from logs of other programs, and print the id of the new run.

    FILE, or - for the standard input, is a log of nvidia-smi, dcgmi, rocm-smi or amd-smi, a
    summary of Jobstats, an answer of Prometheus, the system metrics of Weights & Biases, an export
    of Nsight Systems to SQLite, or the table cuda_gpu_trace of nsys stats. Several files are one
    run if they overlap in time. Lines of other programs in the log are skipped. If the log has a
    long gap, each part is a recording.

    Only what is in the log is in the recording. All other figures of the report are missing, with
    the reason.

    Reads: the files.

    Writes: new recordings in TEHO_HOME.

    Network: not used.
    """
    from teho.cli.progress import hint_if_slow
    from teho.config.privacy import masked_text
    from teho.config.settings import load_settings
    from teho.jobs.importer import importer_for
    from teho.jobs.make_recording import ImportWish, make_recordings
    from teho.jobs.read_source import read_source
    from teho.store.layout import safe_name
    from teho.units import parse_duration

    every_s = parse_duration(every, "--every") if every else None
    if every_s is not None and every_s <= 0:
        raise InputError(f"--every {every}", "more than 0 s")
    if host is not None and (not host or safe_name(host) != host):
        raise InputError(
            f"--host {host!r} is not a host name",
            "letters, digits, `.`, `-` and `_`, such as g1101",
            f"`--host {safe_name(host) or 'NAME'}`",
        )
    wish = ImportWish(
        name=masked_text(name or ""),
        host=host or "",
        every_s=every_s,
    )
    names = tuple(columns.split(",")) if columns else ()

    def source_of(path: Path) -> Source:
        return read_source(path)._replace(columns=names, gpu_count=gpu_count)

    with hint_if_slow("reading the logs…"):
        logs = []
        for path in dict.fromkeys(files):
            source = source_of(path)
            log = importer_for(source, form or "").read(source)
            logs.append((source._replace(text=""), log))
        directories = make_recordings(logs, wish, load_settings().home_directory)
    if len(directories) > 1:
        say(f"the logs have long gaps: {len(directories)} recordings")
    for directory in directories:
        say(_summary_of(directory))
        click.echo(directory.name)


def _summary_of(directory: Path) -> str:
    """Return what a recording has, and how to see it."""
    from teho.store.read import read_run
    from teho.units import counted, format_duration

    run = read_run(directory)
    gpus = counted(sum(len(node.devices) for node in run.nodes), "GPU")
    nodes = counted(len(run.nodes), "node")
    elapsed = format_duration(run.end.elapsed_s) if run.end else "unknown time"
    tools = " and ".join(run.imported.tools) if run.imported else ""
    return f"{gpus} on {nodes} over {elapsed}, from {tools}. Next: `teho report {run.id}`"
