"""`teho record-process`: started by `%%teho` for the kernel of a notebook; not for users."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
def command() -> None:
    """Record the process that is connected to standard input and output."""
    from teho.observe.from_inside import record_process

    record_process(0, 1)
