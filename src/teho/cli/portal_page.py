"""`teho portal-page`: started by `teho portal` for each report; not for users."""

from __future__ import annotations

import gc
import sys

import click

__all__ = ["command"]


@click.command()
@click.argument("kind", type=click.Choice(["report", "diff", "json", "judge"]))
@click.argument("directories", nargs=-1)
def command(kind: str, directories: tuple[str, ...]) -> None:
    """Print a page about the recordings in DIRECTORIES as JSON, with limits on memory and time."""
    from teho.show.portal.child import computed, limit_resources

    gc.disable()  # this process makes only one page, and needs all objects until then
    limit_resources()
    sys.stdout.buffer.write(computed(kind, directories))
