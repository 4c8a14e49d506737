"""`teho tune`: try settings on an unchanged program, and prove the gain."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from teho.cli.declare import option, program_command
from teho.cli.output import Output, output_options
from teho.cli.repeated_runs import RepeatedRuns, read_times, time_options
from teho.errors import InputError
from teho.units import format_duration

if TYPE_CHECKING:
    from teho.experiment.search_space import Room

__all__ = ["command"]

_SHORTEST_WINDOW_S = 0.5
_BATCH_SIZE = "batch-size"


@program_command("""\
  teho tune -- python train.py --out /tmp/tuning
  teho tune --for 20min --window 20s -- torchrun --nproc-per-node 4 train.py
  teho tune --allow batch-size,autocast -- python train.py
  teho tune --find batch-size --for 20min -- python train.py
  teho tune --format json -- python train.py | jq .settings""")
@time_options("5min", "5s")
@option("--allow WHAT,…",
        "Also try settings that can change the results: batch-size, tf32, autocast, channels-last, "
        "feed.",
        unset="none", default="")  # fmt: skip
@option("--find WHAT", "Find the largest batch size that fits into memory, and the fastest batch "
                       "size. WHAT must be batch-size.",
        unset="find settings that make COMMAND faster", default="")  # fmt: skip
@output_options()
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED, required=True)
def command(
    for_: str, window: str, allow: str, find: str, output: Output, argv: tuple[str, ...]
) -> None:
    """Run COMMAND several times with different settings, and say which settings make it faster.

    Teho changes the settings of the data loader and of the threads only for these runs. The files
    of COMMAND are not changed. Each run ends when the step rate is known. COMMAND runs about 20
    times, and writes its files each time. With `--find batch-size`, Teho changes only the batch
    size, until the memory is full. Exit code: 0 if there is a verdict, 1 if more time is needed.

    Reads: what the probe records about COMMAND; with --find, the memory of COMMAND's processes and
    GPUs.

    Writes: no recordings; only the -o file, and temporary files in TMPDIR.

    Network: asks a dcgm-exporter (on this node, or at DCGM_EXPORTER_URL) about GPUs that are older
    than Hopper.
    """
    for_s, window_s = read_times(for_, window)
    if window_s < _SHORTEST_WINDOW_S:
        raise InputError(f"--window {window}", f"{format_duration(_SHORTEST_WINDOW_S)} or more")
    allowed = _allowed(allow)
    if find:
        _check_find(find, allow)
    runs = RepeatedRuns(argv[0], (), for_s)
    if find:
        _find_batch_size(runs, argv, for_s, window_s, output)
    else:
        _tune(runs, argv, for_s, window_s, allowed, output)


def _tune(
    runs: RepeatedRuns,
    argv: tuple[str, ...],
    for_s: float,
    window_s: float,
    allowed: frozenset[str],
    output: Output,
) -> None:
    from teho.experiment.attempt import TunedProgram
    from teho.experiment.tune import tune

    with runs.running():
        run = TunedProgram(argv, os.environ, window_s).run
        tuned = tune(run, argv, _room(), allowed, for_s, progress=runs.progress)
    from teho.show.build.tune import tune_document

    output.show(tune_document(tuned), tuned)
    runs.ended.leave(well=tuned.outcome != "unproved")


def _find_batch_size(
    runs: RepeatedRuns, argv: tuple[str, ...], for_s: float, window_s: float, output: Output
) -> None:
    from teho.experiment.attempt import TunedProgram
    from teho.experiment.batch_search import find_batch_size
    from teho.experiment.memory_meter import MemoryMeter

    limit_bytes = _room().memory_bytes
    with contextlib.closing(MemoryMeter(limit_bytes, os.environ)) as meter, runs.running():
        run = TunedProgram(argv, os.environ, window_s, meter).run
        found = find_batch_size(run, argv, limit_bytes, for_s, progress=runs.progress)
    from teho.show.build.batch_sizes import batch_sizes_document

    output.show(batch_sizes_document(found), found)
    runs.ended.leave(well=found.outcome != "unproved")


def _check_find(what: str, allow: str) -> None:
    from teho.config.toml import did_you_mean

    if what != _BATCH_SIZE:
        raise InputError(
            f"--find {what}{did_you_mean(what, [_BATCH_SIZE])}", next_step="`teho tune --help`"
        )
    if allow:
        raise InputError(
            f"--find {what} cannot be used together with --allow {allow}",
            "only one of these options",
            f"`teho tune --find {what} -- COMMAND`",
        )


def _allowed(text: str) -> frozenset[str]:
    from teho.config.toml import did_you_mean
    from teho.experiment.search_space import ALLOWABLE

    names = frozenset(name for word in text.split(",") if (name := word.strip()))
    for name in sorted(names - set(ALLOWABLE)):
        raise InputError(
            f"--allow {name}{did_you_mean(name, ALLOWABLE)}", next_step="`teho tune --help`"
        )
    return names


def _room() -> Room:
    """Return what this job may use of its node."""
    from pathlib import Path

    from teho.devices.host.cgroup import MemoryCgroup, cpu_quota
    from teho.devices.host.source import describe_host
    from teho.experiment.search_space import Room
    from teho.schedulers.allocation import read_allocation

    cores, memory_bytes = frozenset(os.sched_getaffinity(0)), describe_host().memory_bytes
    job_id = os.environ.get("SLURM_JOB_ID") or os.environ.get("JOB_ID")
    cgroup = MemoryCgroup(Path("/"), job_id, memory_bytes)
    cgroup.close()
    own = read_allocation(os.environ, cores, cgroup.limit_bytes, memory_bytes, cpu_quota())
    return Room(min(len(cores), own.cores_asked or len(cores)), own.memory_limit_bytes)
