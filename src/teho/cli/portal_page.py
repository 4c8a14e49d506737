"""`teho portal-page`: started by `teho portal` for each report; not for users."""

from __future__ import annotations

import gc
import sys

import click

__all__ = ["command"]


@click.command()
@click.argument("kind", type=click.Choice(["report", "diff", "json", "judge", "wait"]))
@click.argument("directories", nargs=-1)
def command(kind: str, directories: tuple[str, ...]) -> None:
    """Print a page about the recordings in DIRECTORIES as JSON, with limits on memory and time.

    With the kind `wait`, the kind and the recordings come from standard input.
    """
    from teho.show.portal.child import answered, computed, limit_resources

    gc.disable()  # this process makes only one page, and needs all objects until then
    limit_resources(kind)
    answer = answered() if kind == "wait" else computed(kind, directories)
    sys.stdout.buffer.write(answer)
