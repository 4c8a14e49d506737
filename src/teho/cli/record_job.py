"""`teho record-job`: started in each job after `teho always on`; not for users."""

from __future__ import annotations

from functools import partial

import click

from teho.config.settings import Settings, load_settings

__all__ = ["command"]


@click.command()
def command() -> None:
    """Record the job of this process until it has ended."""
    from teho.cli.own_path import own_path
    from teho.observe.automatic import record_automatically
    from teho.process.child import fork_child
    from teho.store.automatic import is_due

    settings = load_settings()
    if is_due(settings.home_directory):
        # At the start: Slurm kills this process at the end of the job.
        fork_child(partial(_tidy, settings))
    record_automatically(settings, own_path())


def _tidy(settings: Settings) -> None:
    """Look up how earlier jobs ended, and remove their oldest recordings."""
    from teho.jobs.settle import settle
    from teho.store.automatic import automatic_runs, tidy

    home = settings.home_directory
    settle(home, automatic_runs(home))
    tidy(home, settings.keep_s, settings.keep_bytes)
