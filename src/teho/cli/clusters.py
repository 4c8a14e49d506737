"""`teho clusters`: the catalogue, listed, explained, checked, and compared with what is there."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from teho.cli import say
from teho.cli.discover import discover
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
@click.pass_context
def command(context: click.Context) -> None:
    """List the clusters of the catalogue: what each has, and when that was last verified."""
    if context.invoked_subcommand is not None:
        return
    from teho.cli.terminal import wants_color, width
    from teho.clusters.catalogue import load_catalogue
    from teho.show.cluster_text import render_clusters

    clusters = load_catalogue().values()
    click.echo(render_clusters(clusters, width=width(), color=wants_color(sys.stdout)), nl=False)


@command.command(
    short_help="Explain a cluster: every fact with its source.",
    epilog="""\b
Examples:
  teho clusters show lumi
  cp "$(teho clusters show lumi --path)" ~/.config/teho/clusters/""",
)
@click.argument("name")
@click.option("--path", "only_path", is_flag=True, help="Print only the path of its file.")
def show(name: str, only_path: bool) -> None:
    """Explain the cluster NAME: every fact with its source, and what is not documented."""
    from teho.clusters.catalogue import cluster_files, load_cluster

    cluster = load_cluster(name)
    path = cluster_files()[name]
    if only_path:
        click.echo(str(path))
        return
    from teho.cli.terminal import wants_color, width
    from teho.show.cluster_text import render_cluster

    text = render_cluster(cluster, path, width=width(), color=wants_color(sys.stdout))
    click.echo(text, nl=False)


@command.command(
    short_help="Check files of clusters, a line for each mistake.",
    epilog="""\b
Examples:
  teho clusters check
  teho clusters check ~/.config/teho/clusters/lumi.toml""",
)
@click.argument("files", metavar="[FILE]…", nargs=-1, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Check every FILE, or the whole catalogue; a line for each mistake."""
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
