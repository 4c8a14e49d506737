"""Completion of run ids at the shell's prompt."""

from __future__ import annotations

import click

__all__ = ["complete_run"]


def complete_run(
    ctx: click.Context,  # noqa: ARG001 - click's signature
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Return the ids that begin as typed, newest first; nothing if they cannot be read."""
    from teho.config.settings import load_settings
    from teho.errors import TehoError
    from teho.store.layout import runs_directory

    try:
        runs = runs_directory(load_settings().home_directory)
        # One that begins with a dot is being created, or was when it was killed.
        names = (path.name for path in runs.iterdir())
        ids = sorted((name for name in names if name[0] != "."), reverse=True)
    except (OSError, TehoError):
        return []
    return [run_id for run_id in ["last", *ids] if run_id.startswith(incomplete)]
