"""`teho clusters discover`: describe a cluster from the answers of its scheduler."""

from __future__ import annotations

import sys
import textwrap
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import flag, option
from teho.cli.here import cluster_here
from teho.cli.output import Output, output_options
from teho.errors import InputError

if TYPE_CHECKING:
    from datetime import date

    from teho.model.cluster import Cluster

__all__ = ["discover"]

_STANDARD_OUTPUT = Path("-")
_WIDTH = 96
"""Columns of the comment in a discovered file."""


@click.command(
    short_help="Describe this machine's cluster, or show how it differs from Teho's catalogue.",
    epilog="""\b
Examples:
  teho clusters discover
  teho clusters discover --output ~/.config/teho/clusters/birch.toml
  teho clusters discover --name lumi""",
)
@option("--name NAME", "Set the name of the cluster.", unset="the name that the scheduler gives")
@option("--output FILE", "Write the cluster file to FILE, such as birch.toml; - means standard "
                         "output.", unset="standard output", into="file",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))  # fmt: skip
@flag("--force", "Overwrite FILE if it exists.")
@output_options(file=False)
def discover(name: str | None, file: Path | None, force: bool, output: Output) -> None:
    """Ask Slurm or Grid Engine what the cluster of this machine has and allows.

    If the cluster is not in the catalogue, Teho writes a cluster file to standard output or to
    FILE. The file also lists the facts that are still missing. If the cluster is in the catalogue,
    Teho prints a table of the differences between the catalogue and the scheduler.

    Reads: the cluster files, and the answers of the scheduler.

    Writes: only the --output file.

    Network: only through commands of the scheduler. These commands change nothing.
    """
    from teho.clusters.catalogue import load_catalogue

    name = _name(name, file)
    if file and file.exists() and not force and file != _STANDARD_OUTPUT:
        raise InputError(f"{file} already exists", next_step="`--force` overwrites it")
    today = datetime.now().astimezone().date()
    live = _ask(name, today)
    known = _known(name, live, load_catalogue())
    if known is not None and not name:
        import msgspec

        live = msgspec.structs.replace(live, name=known.name)
    if known is None or file is not None:
        _write(live, file, today)
    if known is not None:
        _compare(known, live, output, to_stderr=file == _STANDARD_OUTPUT)


def _name(name: str | None, file: Path | None) -> str:
    """Return the name from `--name`, or from the name of the file."""
    stem = file.stem if file and file != _STANDARD_OUTPUT else ""
    if name and stem and name != stem:
        raise InputError(
            f"--name {name} and --output {file} have different names",
            f"the same name in both options, such as {name}.toml",
        )
    return name or stem


def _ask(name: str, today: date) -> Cluster:
    """Ask the scheduler of this machine."""
    import os
    import platform
    import shutil

    from teho.errors import SchedulerError
    from teho.schedulers.command import run
    from teho.schedulers.registry import schedulers

    able = [scheduler for scheduler in schedulers().values() if scheduler.inventory_command]
    failure: SchedulerError | None = None
    for scheduler in able:
        if shutil.which(scheduler.inventory_command):
            try:
                return scheduler.discover(run, os.environ, platform.node(), today, name)
            except SchedulerError as error:
                failure = failure or error
    named = " nor ".join(f"{one.title}'s `{one.inventory_command}`" for one in able)
    raise failure or InputError(
        f"Teho found no scheduler on this machine: neither {named} is on PATH",
        next_step=(
            "log in to the cluster, and run `teho clusters discover` there; `teho clusters` "
            "lists the clusters that Teho knows"
        ),
    )


def _known(name: str, live: Cluster, clusters: dict[str, Cluster]) -> Cluster | None:
    """Return the cluster of the catalogue that this machine belongs to, if any."""
    if name:
        return clusters.get(name)
    return cluster_here(clusters.values()) or clusters.get(live.name)


def _write(live: Cluster, file: Path | None, today: date) -> None:
    from teho.clusters.write import cluster_text

    text = cluster_text(live, _header(live, today))
    place = f"~/.config/teho/clusters/{live.name}.toml"
    if file is None or file == _STANDARD_OUTPUT:
        click.echo(text, nl=False)
        say(
            f"`teho clusters discover --output {place}` writes this file to a directory that Teho "
            "reads."
        )
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    say(f"Written to {file}. Teho finds files in ~/.config/teho/clusters/.")


def _header(cluster: Cluster, today: date) -> list[str]:
    """Return the comment at the top of a discovered file, in lines."""
    sentences = (
        f"Facts from the scheduler of {cluster.title}, by `teho clusters discover` on {today}.",
        "Add missing facts with their sources. Then run `teho clusters check FILE`.",
        "In each partition, `unknown` names the facts that are not known. Other unknown facts:",
    )
    lines = [line for text in sentences for line in textwrap.wrap(text, _WIDTH)]
    for note in cluster.notes:
        lines += textwrap.wrap(note, _WIDTH, initial_indent="- ", subsequent_indent="  ")
    return lines


def _compare(known: Cluster, live: Cluster, output: Output, *, to_stderr: bool) -> None:
    from teho.clusters.differences import differences
    from teho.show.build.clusters import differences_document

    document = differences_document(known, live, differences(known, live))
    output.show(document, stream=sys.stderr if to_stderr else sys.stdout)
