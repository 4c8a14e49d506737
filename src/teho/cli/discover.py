"""`teho clusters discover`: describe a cluster from the answers of its scheduler."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.here import cluster_here
from teho.cli.output import Output, output_options
from teho.errors import InputError

if TYPE_CHECKING:
    from datetime import date

    from teho.model.cluster import Cluster

__all__ = ["discover"]

_STANDARD_OUTPUT = Path("-")


@click.command(
    short_help="Describe the cluster of this machine, or show where the catalogue differs.",
    epilog="""\b
Examples:
  teho clusters discover
  teho clusters discover --output ~/.config/teho/clusters/birch.toml
  teho clusters discover --name lumi""",
)
@click.option(
    "--name", metavar="NAME", help="Set the name of the cluster.  [default: the scheduler's]"
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the cluster's file, such as birch.toml; - for standard output.  "
    "[default: standard output]",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@output_options(file=False)
def discover(name: str | None, output: Path | None, force: bool, result: Output) -> None:
    """Ask Slurm or Grid Engine what the cluster of this machine has and allows.

    If the cluster is not in the catalogue, writes a cluster file to standard output or to FILE. The
    file names the facts that are still missing. If the cluster is in the catalogue, a table shows
    the differences between the catalogue and the scheduler.

    Reads: the cluster files, and the answers of the scheduler.

    Writes: only the --output file.

    Network: only through commands of the scheduler that change nothing.
    """
    from teho.clusters.catalogue import load_catalogue

    name = _name(name, output)
    if output and output.exists() and not force and output != _STANDARD_OUTPUT:
        raise InputError(f"{output} already exists", next_step="`--force` overwrites it")
    today = datetime.now().astimezone().date()
    live = _ask(name, today)
    known = _known(name, live, load_catalogue())
    if known is not None and not name:
        import msgspec

        live = msgspec.structs.replace(live, name=known.name)
    if known is None or output is not None:
        _write(live, output, today)
    if known is not None:
        _compare(known, live, result, to_stderr=output == _STANDARD_OUTPUT)


def _name(name: str | None, output: Path | None) -> str:
    """Return the name from `--name`, or from the name of the file."""
    stem = output.stem if output and output != _STANDARD_OUTPUT else ""
    if name and stem and name != stem:
        raise InputError(
            f"--name {name} and --output {output}", f"the same name twice, such as {name}.toml"
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
        f"no scheduler on this machine: neither {named}",
        next_step="log in to the cluster, and run `teho clusters discover` there; `teho "
        "clusters` lists the known ones",
    )


def _known(name: str, live: Cluster, clusters: dict[str, Cluster]) -> Cluster | None:
    """Return the cluster of the catalogue that this machine belongs to, if any."""
    if name:
        return clusters.get(name)
    return cluster_here(clusters.values()) or clusters.get(live.name)


def _write(live: Cluster, output: Path | None, today: date) -> None:
    from teho.clusters.write import cluster_text
    from teho.show.text.cluster_file import header_lines

    text = cluster_text(live, header_lines(live, today))
    place = f"~/.config/teho/clusters/{live.name}.toml"
    if output is None or output == _STANDARD_OUTPUT:
        click.echo(text, nl=False)
        say(f"`teho clusters discover --output {place}` writes it to a directory that Teho reads.")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    say(f"Written to {output}. Teho finds files in ~/.config/teho/clusters/.")


def _compare(known: Cluster, live: Cluster, result: Output, *, to_stderr: bool) -> None:
    from teho.clusters.differences import differences
    from teho.show.build.clusters import differences_document

    document = differences_document(known, live, differences(known, live))
    result.show(document, stream=sys.stderr if to_stderr else sys.stdout)
