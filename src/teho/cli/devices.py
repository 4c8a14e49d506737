"""`teho devices`: what this machine has, and which signals can be had here."""

from __future__ import annotations

import sys
from threading import Timer

import click

from teho.cli import say

__all__ = ["command"]

_PATIENCE_S = 2.0


@click.command(
    epilog="""\b
Examples:
  teho devices
  srun --gpus=1 teho devices
  teho devices --format json > devices.json""",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def command(form: str) -> None:
    """Show the GPUs of this machine, each signal's present value, or why it cannot be had.

    This is the page to send to support. It needs no GPU and no root, and holds no secrets.
    A driver that hangs is given up after half a minute.
    """
    import msgspec

    from teho.observe.survey import take_survey

    hint = Timer(_PATIENCE_S, say, ["asking the drivers…"])
    hint.daemon = True
    if sys.stderr.isatty():
        hint.start()
    survey = take_survey()
    hint.cancel()
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(survey), indent=2).decode())
        return
    from teho.cli.terminal import wants_color, width
    from teho.show.devices_text import render_devices

    click.echo(render_devices(survey, width=width(), color=wants_color(sys.stdout)), nl=False)
