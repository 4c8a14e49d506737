"""`teho energy`: the energy of the GPUs, from their own counters."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import flag, program_command
from teho.cli.output import Output, output_options
from teho.devices.drawn import Drawn, Energy, lacking_words, tick_error_percent
from teho.errors import DeviceError, InputError
from teho.model.missing import Missing

if TYPE_CHECKING:
    from teho.devices.meter import Meter
    from teho.model.device import Device
    from teho.observe.metered import MeteredRun
    from teho.store.energy import SavedCounter

__all__ = ["command"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_NEXT = "`teho energy -- COMMAND` or `teho run -- COMMAND`: these measure during the whole run"


@program_command("""\
  teho energy --save; python train.py; teho energy --diff
  teho energy -- python train.py --epochs 3
  teho energy -o energy.json -- python train.py
  srun teho energy -- python train.py""")
@flag("--save", "Save the values of the energy counters of this node's GPUs.")
@flag("--diff", "Print the energy since the last --save.")
@output_options()
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED)
def command(save: bool, diff: bool, output: Output, argv: tuple[str, ...]) -> None:
    """Print the energy of the job's GPUs on this node, during COMMAND or between --save and --diff.

    The energy of idle GPUs is included. COMMAND keeps its input, output, signals and exit code; the
    result goes to stderr, or to the -o file. --why prints a table.

    Reads: the energy counters of the GPU drivers; with --diff, the saved values.

    Writes: the -o file; with --save, the values of the counters to TEHO_HOME.

    Network: not used.
    """
    if save + diff + bool(argv) != 1:
        raise click.UsageError("Give one of these three: --save, --diff or '-- COMMAND…'.")
    if argv:
        _run(argv, output)
    elif save:
        _save()
    elif _prints(os.environ):
        _diff(output)


def _prints(environment: Mapping[str, str]) -> bool:
    """Return whether this task prints the energy of its GPUs.

    If several tasks of a node see the same GPUs, only the first one prints. Tasks that see
    different GPUs all print.
    """
    from teho.devices.sources import visible_variables
    from teho.schedulers.task import read_task

    try:
        task = read_task(environment, os.uname().nodename)
    except InputError:
        return True
    if task.local_rank == 0:
        return True
    seen = next((environment[name] for name in visible_variables() if name in environment), None)
    return seen is not None and str(seen.count(",") + 1) != environment.get("SLURM_GPUS_ON_NODE")


def _save() -> None:
    from teho.config.settings import load_settings
    from teho.store.energy import save_counter

    home = load_settings().home_directory
    _, counters = _counters()
    for _, device, now in counters:
        save_counter(home, os.uname().nodename, device.id, now)


def _diff(output: Output) -> None:
    from teho.config.settings import load_settings
    from teho.devices.meter import drawn
    from teho.store.energy import load_counter

    home = load_settings().home_directory
    meter, counters = _counters()
    gpus = []
    for place, device, now in counters:
        saved = load_counter(home, os.uname().nodename, device.id, now)
        elapsed_s = now.at_s - saved.at_s
        (figure,) = drawn([device], [saved.energy_j], [now.energy_j], elapsed_s)
        if isinstance(figure, Missing):
            raise _refusal(meter, {place: figure})
        gpus.append(Drawn(place, figure, elapsed_s))
    _print(Energy(tuple(gpus)), meter.notes, output, sys.stdout)


def _counters() -> tuple[Meter, list[tuple[int, Device, SavedCounter]]]:
    """Read the energy counters of all GPUs, with the position of each GPU.

    Raises:
        DeviceError: the job has no GPU on this node, or a GPU has no counter.
    """
    from teho.devices.meter import Meter, without_counter
    from teho.store.energy import SavedCounter

    meter = Meter()
    readings = meter.read()
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    if lacking := without_counter(meter.devices, readings):
        raise _refusal(meter, lacking)
    boot = _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""
    job = os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID") or ""
    # A reading that is not a number is included in the other die of the card.
    return meter, [
        (place, device, SavedCounter(boot, job, at_s, float(reading)))
        for place, (device, reading) in enumerate(zip(meter.devices, readings, strict=True))
        if isinstance(reading, (int, float))
    ]


def _refusal(meter: Meter, lacking: Mapping[int, Missing]) -> DeviceError:
    whole = all(meter.devices[place].parent_id is None for place in lacking)
    return DeviceError(lacking_words(lacking), next_step=_NEXT if whole else "")


def _run(argv: tuple[str, ...], output: Output) -> None:
    from teho.observe.metered import run_metered
    from teho.observe.program import die_like
    from teho.process.exec_program import CannotStart, exec_program

    try:
        if not _prints(os.environ):
            exec_program(argv, os.environ)
        outcome, measured = run_metered(argv)
    except CannotStart as error:
        say(str(error))
        sys.exit(error.exit_code)
    try:
        _show(measured, output)
    except OSError as error:
        say(f"the energy could not be printed: {error}")
    die_like(outcome)


def _show(measured: MeteredRun, output: Output) -> None:
    """Print the energy that was measured, and which GPUs are missing."""
    if measured.refusal:
        say(f"no energy: {measured.refusal}")
        return
    gpus, notes = [], list(measured.notes)
    lacking: dict[int, Missing] = {}
    for gpu in measured.gpus:
        if isinstance(gpu.energy_j, Missing):
            lacking[gpu.position] = gpu.energy_j
            continue
        gpus.append(Drawn(gpu.position, gpu.energy_j, measured.elapsed_s))
        if gpu.is_integrated:
            notes.append(
                f"GPU {gpu.position} has no energy counter: the energy is computed from the power"
            )
    if lacking:
        notes.append(lacking_words(lacking))
    energy = Energy(tuple(gpus), is_whole=len(gpus) == len(measured.gpus))
    _print(energy, notes, output, sys.stderr)


def _print(energy: Energy, notes: Sequence[str], output: Output, stream: IO[str]) -> None:
    from teho.show.build.energy import energy_document, energy_lines

    notes = list(notes)
    percent = tick_error_percent(energy.gpus)
    if percent is not None:
        notes.append(
            "the energy counters advance about every 100 ms: over this short time, the error of "
            f"the energy is ± {percent:.0f} %"
        )
    lines = "".join(f"{line}\n" for line in energy_lines(energy))
    output.show(energy_document(energy, notes), script=lines, stream=stream)
    if output.form == "text" and output.detail == "default":
        for note in notes:
            say(note)
