"""`teho devices`: what this machine has, and which signals can be had here."""

from __future__ import annotations

import sys
from threading import Timer

import click

from teho.cli import say
from teho.cli.output import Output, output_options

__all__ = ["command"]

_PATIENCE_S = 2.0


@click.command(
    epilog="""\b
Examples:
  teho devices
  srun --gpus=1 teho devices
  teho devices --why
  teho devices -o devices.json""",
)
@output_options()
def command(output: Output) -> None:
    """Show the GPUs of this machine, each signal's present value, or why it cannot be had.

    This is the page to send to support. It needs no GPU and no root, and holds no secrets.
    A driver that hangs is given up after half a minute.
    """
    from teho.observe.survey import take_survey

    hint = Timer(_PATIENCE_S, say, ["asking the drivers…"])
    hint.daemon = True
    if sys.stderr.isatty():
        hint.start()
    survey = take_survey()
    hint.cancel()
    from teho.show.build.devices import devices_document

    output.show(devices_document(survey), survey)
