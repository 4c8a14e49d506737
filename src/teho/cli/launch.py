"""`teho launch`: its help and its error messages; see `teho.launch.options`."""

from __future__ import annotations

import os
import sys

import click

from teho.cli.declare import flag, option, program_command
from teho.launch.launch import launch
from teho.launch.options import Options
from teho.units import parse_duration

__all__ = ["command"]


@program_command("""\
  srun teho launch -- python train.py
  srun --ntasks-per-node=1 teho launch -- torchrun train.py
  srun teho run -- teho launch -- singularity run $SIF python train.py
  mpirun -np 8 teho launch -- python train.py
  srun teho launch --dry-run
  srun teho launch --check""")
@option("--bind auto|none|FILE",
        "Bind each rank to the cores nearest its GPU (auto), or do not bind ranks (none). In FILE, "
        "each line is for a local rank: core numbers such as 0-6, or a mask such as 0x7f.",
        default="auto")  # fmt: skip
@option("--gpus",
        "Let each rank use all GPUs of the node (all) or only its own GPUs (own); auto: do what "
        "the cluster's documents advise.", type=click.Choice(["auto", "all", "own"]),
        default="auto")  # fmt: skip
@option("--env NAME=VALUE", "Set an environment variable; may be repeated.", unset="none",
        into="pairs", multiple=True)  # fmt: skip
@option("--generation NAME|none",
        "Set the environment variables that the cluster's containers of this generation need, such "
        "as laif-rocm7 on LUMI.", unset="the current generation", default="")  # fmt: skip
@flag("--dry-run", "Print what each rank would get, without starting COMMAND.")
@flag("--check", "Measure the connections between ranks, and find the slowest rank, without "
                 "starting COMMAND.")  # fmt: skip
@option("--timeout TIME", "With --check, wait at most this time for all ranks.", unset="1min")
@option("--for TIME", "With --check, measure each connection for this time.", unset="1s",
        into="length")  # fmt: skip
@flag("--json", "With --check, print the result as one JSON object.", into="as_json")
@flag("-q --quiet", "Do not print Teho's notes about the launch.")
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED)
def command(
    bind: str,
    gpus: str,
    pairs: tuple[str, ...],
    generation: str,
    dry_run: bool,
    check: bool,
    timeout: str | None,
    length: str | None,
    as_json: bool,
    quiet: bool,
    argv: tuple[str, ...],
) -> None:
    """Set the rank, cores, threads and caches of this task of a job, then run COMMAND.

    Start `teho launch` once per task, for example with srun, mpirun or torchrun. When all is set,
    COMMAND replaces Teho in the same process.

    Reads: the environment, and the catalogue.

    Writes: cache folders on the node.

    Network: only with --check: connects the ranks with each other.
    """
    for pair in pairs:
        if "=" not in pair[1:]:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint="'--env'")
    if not (argv or dry_run or check):
        raise click.UsageError("Missing argument '-- COMMAND…'.")
    words = ["--json"] if as_json else []
    if timeout is not None:
        words.append(f"--timeout={_positive(timeout, '--timeout')!r}")
    if length is not None:
        words.append(f"--seconds={_positive(length, '--for')!r}")
    if words and not check:
        raise click.UsageError("--timeout, --for and --json have an effect only with --check.")
    options = Options()
    options.check_words = tuple(words)
    options.bind, options.gpus, options.env = bind, gpus, list(pairs)
    options.generation, options.dry_run, options.check = generation, dry_run, check
    options.quiet, options.command = quiet, argv
    sys.exit(launch(options, os.environ))


def _positive(text: str, option: str) -> float:
    length_s = parse_duration(text, option)
    if length_s <= 0:
        raise click.BadParameter(f"{text!r} is not above 0.", param_hint=f"'{option}'")
    return length_s
