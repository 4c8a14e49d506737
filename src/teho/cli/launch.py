"""`teho launch`: its help, and what is said of its mistakes; see `teho.launch.options`."""

from __future__ import annotations

import os
import sys

import click

from teho.launch.launch import launch
from teho.launch.options import Options
from teho.units import parse_duration

__all__ = ["command"]


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  srun teho launch -- python train.py
  srun --ntasks-per-node=1 teho launch -- torchrun train.py
  srun teho run -- teho launch -- singularity run $SIF python train.py
  mpirun -np 8 teho launch -- python train.py
  srun teho launch --dry-run
  srun teho launch --check""",
)
@click.option(
    "--bind",
    metavar="auto|none|FILE",
    default="auto",
    help="Cores of each rank: those nearest its GPU; as they are; or of a file, a line for each "
    "local rank, such as 0-6 or 0x7f.",
)
@click.option(
    "--gpus",
    type=click.Choice(["auto", "all", "own"]),
    default="auto",
    help="GPUs that a rank sees: as the cluster needs it, all of its node's, or only its own.",
)
@click.option(
    "--env", "pairs", metavar="NAME=VALUE", multiple=True, help="Set a variable; may be repeated."
)
@click.option(
    "--generation",
    metavar="NAME|none",
    default="",
    help="Which of the cluster's variables for containers (`teho clusters show` lists them).",
)
@click.option("--dry-run", is_flag=True, help="Print what every rank would get; start nothing.")
@click.option(
    "--check",
    is_flag=True,
    help="Instead of a program, see who reaches whom, how fast, and which rank is slowest.",
)
@click.option("--timeout", metavar="TIME", help="With --check: how long to wait for all ranks.")
@click.option("--for", "length", metavar="TIME", help="With --check: length of a measurement.")
@click.option("--json", "as_json", is_flag=True, help="With --check: print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing of what was left as it is.")
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
    """Give this task of a job its rank, cores, threads and caches, and become COMMAND.

    Once per task: under srun, mpirun or torchrun, or alone. Nothing of Teho stays in between.
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
        raise click.UsageError("--timeout, --for and --json belong to --check.")
    options = Options()
    options.check_words = tuple(words)
    options.bind, options.gpus, options.env = bind, gpus, list(pairs)
    options.generation, options.dry_run, options.check = generation, dry_run, check
    options.quiet, options.command = quiet, argv
    sys.exit(launch(options, os.environ))


def _positive(text: str, option: str) -> float:
    length_s = parse_duration(text, option)
    if length_s <= 0:
        raise click.BadParameter(f"{text!r} is no time.", param_hint=f"'{option}'")
    return length_s
