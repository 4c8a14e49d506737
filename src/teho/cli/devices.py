"""`teho devices`: the devices of this machine, and the signals that Teho can read."""

from __future__ import annotations

from teho.cli.declare import plain_command
from teho.cli.output import Output, output_options
from teho.cli.progress import hint_if_slow

__all__ = ["command"]


@plain_command("""\
  teho devices
  srun --gpus=1 teho devices
  teho devices --why
  teho devices -o devices.json""")
@output_options()
def command(output: Output) -> None:
    """Show the GPUs of this machine, and the value of each signal, or why the value is missing.

    You can send this output to your support team: it contains no secrets. The command works without
    a GPU and without root. If a driver hangs, Teho stops waiting after half a minute.

    Reads: the GPU drivers, and files of the kernel.

    Writes: only the -o file.

    Network: asks a dcgm-exporter (on this node, or at DCGM_EXPORTER_URL) about GPUs that are older
    than Hopper.
    """
    from teho.observe.survey import read_survey

    with hint_if_slow("asking the drivers…"):
        survey = read_survey()
    from teho.show.build.devices import devices_document

    output.show(devices_document(survey), survey)
