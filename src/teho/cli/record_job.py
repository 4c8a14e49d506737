"""`teho record-job`: started in each job after `teho always on`; not for users."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
def command() -> None:
    """Record the job of this process until it has ended."""
    from teho.cli.own_path import own_path
    from teho.config.settings import load_settings
    from teho.observe.unasked import record_unasked

    record_unasked(load_settings(), own_path())
