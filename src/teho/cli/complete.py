"""Completion of run ids in the shell."""

from __future__ import annotations

import click

__all__ = ["complete_run"]


def complete_run(
    ctx: click.Context,  # noqa: ARG001 - click's signature
    param: click.Parameter,  # noqa: ARG001
    incomplete: str,
) -> list[str]:
    """Return the ids that begin with the typed text, newest first; none if they cannot be read."""
    from teho.config.settings import load_settings
    from teho.errors import TehoError
    from teho.store.layout import runs_directory

    try:
        runs = runs_directory(load_settings().home_directory)
        # A name with a dot at its start is a recording that was never completely created.
        names = (path.name for path in runs.iterdir())
        ids = sorted((name for name in names if name[0] != "."), reverse=True)
    except (OSError, TehoError):
        return []
    return [run_id for run_id in ["last", *ids] if run_id.startswith(incomplete)]
