"""`teho clusters discover`: a cluster's file from its live scheduler."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.output import Output, output_options
from teho.errors import InputError

if TYPE_CHECKING:
    from datetime import date

    from teho.model.cluster import Cluster

__all__ = ["discover"]

_STANDARD_OUTPUT = Path("-")


@click.command(
    short_help="Ask the scheduler here; write a file, or show where the catalogue differs.",
    epilog="""\b
Examples:
  teho clusters discover
  teho clusters discover --output ~/.config/teho/clusters/birch.toml
  teho clusters discover --name lumi""",
)
@click.option("--name", metavar="NAME", help="Name of the cluster.  [default: the scheduler's]")
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the file here; - for standard output. Its name is the cluster's.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@output_options(file=False)
def discover(name: str | None, output: Path | None, force: bool, result: Output) -> None:
    """Learn what this machine's cluster has and allows from its Slurm or Grid Engine.

    A cluster that the catalogue does not know is written as a file of the catalogue, to
    standard output or to FILE, with what could not be learnt named in it. For one that
    it knows, a table shows where the catalogue and the live scheduler differ.
    """
    from teho.clusters.catalogue import load_catalogue

    name = _name(name, output)
    if output and output.exists() and not force and output != _STANDARD_OUTPUT:
        raise InputError(f"{output} is there already", next_step="--force overwrites it")
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
    """Return the name that was given, by itself or as the file's."""
    stem = output.stem if output and output != _STANDARD_OUTPUT else ""
    if name and stem and name != stem:
        raise InputError(
            f"--name {name} and --output {output}", f"the same name twice, such as {name}.toml"
        )
    return name or stem


def _ask(name: str, today: date) -> Cluster:
    """Ask the scheduler that answers here."""
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
        next_step="log in to the cluster and ask there; `teho clusters` lists those that are known",
    )


def _known(name: str, live: Cluster, clusters: dict[str, Cluster]) -> Cluster | None:
    """Return the catalogue's cluster that this is."""
    import os
    import platform

    from teho.clusters.current import current_cluster

    if name:
        return clusters.get(name)
    here = current_cluster(os.environ, platform.node(), clusters.values())
    return here or clusters.get(live.name)


def _write(live: Cluster, output: Path | None, today: date) -> None:
    from teho.clusters.write import cluster_text
    from teho.show.text.cluster_file import header_lines

    text = cluster_text(live, header_lines(live, today))
    place = f"~/.config/teho/clusters/{live.name}.toml"
    if output is None or output == _STANDARD_OUTPUT:
        click.echo(text, nl=False)
        say(f"`teho clusters discover --output {place}` keeps it where Teho finds it.")
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    say(f"Written to {output}. Teho finds files in ~/.config/teho/clusters/.")


def _compare(known: Cluster, live: Cluster, result: Output, *, to_stderr: bool) -> None:
    from teho.clusters.differences import differences
    from teho.show.build.clusters import differences_document

    document = differences_document(known, live, differences(known, live))
    result.show(document, stream=sys.stderr if to_stderr else sys.stdout)
