"""`teho clusters`: list, show, check and discover the clusters of the catalogue."""

from __future__ import annotations

from pathlib import Path

import click

from teho.cli import say
from teho.cli.declare import flag
from teho.cli.discover import discover
from teho.cli.output import Output, output_options
from teho.units import counted

__all__ = ["command"]


@click.group(
    invoke_without_command=True,
    epilog="""\b
Examples:
  teho clusters
  teho clusters show lumi
  teho clusters check
  teho clusters discover""",
)
@output_options()
@click.pass_context
def command(context: click.Context, output: Output) -> None:
    """List the clusters of the catalogue.

    The list says what each cluster has, and when the facts about the cluster were last verified.

    Reads: Teho's own cluster files, and the cluster files in TEHO_CLUSTERS and in
    ~/.config/teho/clusters.

    Writes: only the -o file.

    Network: not used.
    """
    if context.invoked_subcommand is not None:
        return
    from teho.clusters.catalogue import load_catalogue
    from teho.show.build.clusters import clusters_document

    output.show(clusters_document(load_catalogue().values()))


@command.command(
    short_help="Show a cluster: every fact with its source.",
    epilog="""\b
Examples:
  teho clusters show lumi --why
  cp "$(teho clusters show lumi --path)" ~/.config/teho/clusters/""",
)
@click.argument("name")
@flag("--path", "Print only the path of the cluster's file.", into="only_path")
@output_options()
def show(name: str, only_path: bool, output: Output) -> None:
    """Show the cluster NAME.

    With --why, also show the source of every fact, and what is not documented.

    Reads: Teho's own cluster files, and the cluster files in TEHO_CLUSTERS and in
    ~/.config/teho/clusters.

    Writes: only the -o file.

    Network: not used.
    """
    from teho.clusters.catalogue import cluster_files, load_cluster

    cluster = load_cluster(name)
    path = cluster_files()[name]
    if only_path:
        click.echo(str(path))
        return
    from teho.show.build.clusters import cluster_document

    output.show(cluster_document(cluster, path), cluster)


@command.command(
    short_help="Check cluster files, and print a line for each mistake.",
    epilog="""\b
Examples:
  teho clusters check
  teho clusters check ~/.config/teho/clusters/lumi.toml""",
)
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Check every FILE, or the whole catalogue, and print a line for each mistake.

    Reads: each FILE; without FILE, all cluster files.

    Writes: no files.

    Network: not used.
    """
    from teho.clusters.catalogue import cluster_files
    from teho.clusters.check import mistakes_in

    paths = files or tuple(cluster_files().values())
    mistakes = [line for path in paths for line in mistakes_in(path)]
    for line in mistakes:
        say(line)
    if mistakes:
        raise click.exceptions.Exit(2)
    click.echo(f"{counted(len(paths), 'file')}, no mistakes.")


command.add_command(discover)
