"""`teho bench`: worked examples that compare CPU and GPU on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli.declare import flag, option, plain_command
from teho.cli.ended_early import EndedEarly
from teho.cli.output import Output, output_options
from teho.cli.plot_file import plot_file, plot_option, show_and_draw
from teho.cli.progress import StatusLine
from teho.errors import InputError
from teho.units import format_duration, parse_duration

if TYPE_CHECKING:
    from teho.bench.example import BenchExample
    from teho.bench.images import RequestedSizes
    from teho.experiment.placement import Machine, Placement
    from teho.model.bench import Bench

    Task = tuple[BenchExample, list[Placement], list[str]]

__all__ = ["command"]

_QUICK_S = 50.0
_FULL_S = 600.0
_SHORTEST_S = 5.0
_MOST_WORKERS = 256
_MOST_PREFETCHED = 64


@plain_command("""\
  teho bench
  teho bench solve --quick
  teho bench matmul --on cpu:all,gpu:1 --library numpy,torch --plot matmul.svg
  teho bench cnn --images 50000 --batch 1024,4096 --workers 10,4
  teho bench regression cnn --for 20min -o bench.html
  teho bench --from solve.json --plot solve.svg""")
@flag("--quick", "Measure fewer sizes, and only small sizes. Each example takes less than a "
                 "minute.")  # fmt: skip
@option("--library NAME,…", "Compare these libraries: numpy, cupy, jax or torch.",
        unset="all that are installed", into="libraries", default="")  # fmt: skip
@option("--on PLACE,…", "Compare these placements: cpu:N, cpu:all or gpu:1.",
        unset="cpu:1,cpu:all,gpu:1", default="")  # fmt: skip
@option("--python PATH", "Use the libraries that this Python has.",
        unset="`python` on PATH, else Teho's Python", default="")  # fmt: skip
@option("--for TIME", "Stop each example after this time.", unset="10min, or 50s with --quick",
        into="for_", default="")  # fmt: skip
@option("--images N", "Train on N images in an epoch (cnn, resnet152).",
        unset="50000 on a GPU; on CPUs, 8192 for cnn and 256 for resnet152; fewer with --quick",
        default="")  # fmt: skip
@option("--batch N,…", "Compare these batch sizes (cnn, resnet152).",
        unset="for cnn, 64 and more; for resnet152, 16 and more on a GPU, 8 and more on CPUs; "
        "smaller sizes with --quick; only sizes for which there are enough images",
        into="batches", default="")  # fmt: skip
@option("--workers N,…",
        "Compare these numbers of data-loader workers. Only the first number of workers is "
        "measured with all batch sizes.",
        unset="4,0,1,2,8,16", default="")  # fmt: skip
@option("--prefetch N,…",
        "Compare these numbers of batches that each worker prefetches. Only the first number of "
        "batches is measured with all batch sizes.",
        unset="2,1,4,8", into="prefetches", default="")  # fmt: skip
@plot_option
@option("--from FILE",
        "Do not measure: show the results in FILE, which `teho bench --format json` wrote.",
        unset="measure", into="stored", default="")  # fmt: skip
@output_options()
@click.argument("names", metavar="[NAME…]", nargs=-1)
def command(
    quick: bool,
    libraries: str,
    on: str,
    python: str,
    for_: str,
    images: str,
    batches: str,
    workers: str,
    prefetches: str,
    output: Output,
    plot: str | None,
    stored: str,
    names: tuple[str, ...],
) -> None:
    """Measure examples on cores and on a GPU, and find from which problem size the GPU is faster.

    Without NAME, Teho lists the examples. Before Teho measures the libraries, it compares their
    results. Exit code: 0 if the results agree, 1 if the results differ or no library could be
    measured.

    Reads: the libraries of the Python of --python, the GPU drivers, the --from file, and the images
    in CIFAR10_PATH.

    Writes: only the -o and --plot files, and temporary files in TMPDIR.

    Network: asks a dcgm-exporter (on this node, or at DCGM_EXPORTER_URL) about GPUs that are older
    than Hopper.
    """
    from teho.bench.examples import EXAMPLES, LIBRARIES
    from teho.bench.verdict import is_sound
    from teho.experiment.placement import this_machine

    if stored:
        if names:
            raise click.UsageError("Give either NAME or --from, not both.")
        given = {"--quick": quick, "--library": libraries, "--on": on, "--python": python,
                 "--for": for_, "--images": images, "--batch": batches, "--workers": workers,
                 "--prefetch": prefetches}  # fmt: skip
        for option, value in given.items():
            if value:
                raise click.UsageError(f"{option} has no effect with --from: no example is run.")
        from teho.show.json.bench import read_bench_json

        drawn = plot_file(plot)
        _show(read_bench_json(Path(stored)), output, drawn)
        return
    if not names:
        from teho.show.build.bench import examples_document

        output.show(examples_document(EXAMPLES.values()))
        return
    examples = [EXAMPLES[_one_of(name, EXAMPLES, "examples")] for name in dict.fromkeys(names)]
    for_s = parse_duration(for_, "--for") if for_ else _QUICK_S if quick else _FULL_S
    if for_s < _SHORTEST_S:
        raise InputError(f"--for {for_}", f"{format_duration(_SHORTEST_S)} or more")
    drawn = plot_file(plot)
    words = [
        _one_of(word.strip(), LIBRARIES, "libraries")
        for word in libraries.split(",")
        if word.strip()
    ]
    requested = _requested_sizes(images, batches, workers, prefetches)
    machine = this_machine()
    tasks = [_task(example, machine, on, requested, quick=quick) for example in examples]
    with EndedEarly() as ended:
        chosen = words or list(LIBRARIES)
        bench = _measured(tasks, machine, chosen, _python(python), for_s, quick, ended)
    _show(bench, output, drawn)
    ended.leave(well=all(map(is_sound, bench.results)))


def _one_of(name: str, known: Mapping[str, object], what: str) -> str:
    from teho.config.toml import did_you_mean

    if name not in known:
        raise InputError(f"{name!r} is not one of the {what}{did_you_mean(name, known)}")
    return name


def _python(path: str) -> tuple[str, str]:
    """Return the Python for the programs, which needs NumPy, and why it was chosen.

    Raises:
        InputError: no Python with NumPy is found.
    """
    if path:
        if shutil.which(path) is None:
            raise InputError(f"--python {path}: no such program", "a Python with NumPy")
        if not _has_numpy(path):
            raise InputError(
                f"--python {path} cannot import NumPy",
                "a Python with NumPy",
                f"`{path} -m pip install numpy`",
            )
        return path, "as you asked"
    first = shutil.which("python")
    if first and _has_numpy(first):
        return first, "the first `python` on PATH"
    if _has_numpy(sys.executable):
        why = "has no NumPy" if first else "is not on PATH"
        return sys.executable, f"Teho's own Python, because `python` {why}"
    raise InputError(
        f"neither {first or 'a `python` on PATH'} nor Teho's own Python {sys.executable} has NumPy",
        "a Python with the libraries to compare",
        "`teho bench --python PATH`, or load your environment first",
    )


def _has_numpy(python: str) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import numpy"], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _requested_sizes(images: str, batches: str, workers: str, prefetches: str) -> RequestedSizes:
    """Read the sizes that a user chose.

    Raises:
        InputError: a size is not a number, or too small or too large.
    """
    from teho.bench.images import ALL_IMAGES, FEWEST_IMAGES, RequestedSizes

    return RequestedSizes(
        next(iter(_numbers("--images", images, FEWEST_IMAGES, ALL_IMAGES, most_numbers=1)), 0),
        _numbers("--batch", batches, 1, ALL_IMAGES),
        _numbers("--workers", workers, 0, _MOST_WORKERS),
        _numbers("--prefetch", prefetches, 1, _MOST_PREFETCHED),
    )


def _numbers(
    option: str, text: str, least: int, most: int, most_numbers: int = 0
) -> tuple[int, ...]:
    """Return different whole numbers, in the order of the text."""
    words = [word.strip() for word in text.split(",")] if text else []
    if not all(word.isdecimal() and least <= int(word) <= most for word in words) or (
        most_numbers and len(words) > most_numbers
    ):
        what = "a whole number" if most_numbers == 1 else "whole numbers, separated by commas,"
        raise InputError(f"{option} {text}", f"{what} from {least} to {most}")
    return tuple(dict.fromkeys(map(int, words)))


def _task(
    example: BenchExample, machine: Machine, on: str, requested: RequestedSizes, *, quick: bool
) -> Task:
    """Return an example with its sizes, its placements, and notes about missing placements.

    Raises:
        InputError: a placement or a size is impossible.
    """
    from teho.bench.examples import with_sizes
    from teho.experiment.placement import read_placements

    wanted = on or _default_places(machine, all_cores=example.sweeps_cores and not quick)
    placements, notes = read_placements(wanted, machine, "--on")
    _refuse_several(placements, on)
    kinds = dict.fromkeys("on_gpu" if place.gpus else "full" for place in placements)
    return with_sizes(example, requested, ["quick"] if quick else kinds), placements, notes


def _measured(
    tasks: Iterable[Task],
    machine: Machine,
    libraries: list[str],
    python: tuple[str, str],
    for_s: float,
    quick: bool,
    ended: EndedEarly,
) -> Bench:
    from datetime import datetime, timezone

    from teho.bench.measure import Effort, measure
    from teho.devices.host.source import describe_host
    from teho.devices.sources import open_gpus
    from teho.model.bench import Bench
    from teho.version import __version__

    sources = open_gpus(os.environ)[0]
    results, progress = [], StatusLine()
    try:
        for example, placements, notes in tasks:
            measured = measure(
                example,
                libraries,
                placements,
                python[0],
                os.environ,
                Effort.of(is_quick=quick),
                for_s,
                sources=sources,
                memory_bytes=_memory_bytes(),
                notes=notes,
                progress=progress,
            )
            results.append(measured)
            if ended.by:
                break
    finally:
        progress("")
        for source in sources:
            source.close()
    return Bench(
        teho_version=__version__,
        at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        cpu=describe_host().cpu_model,
        gpus=tuple(gpu.name for gpu in machine.gpus),
        python=python[0],
        is_quick=quick,
        results=tuple(results),
        notes=(f"The programs ran in {python[0]}: {python[1]}.",),
    )


def _refuse_several(placements: Iterable[Placement], on: str) -> None:
    """Refuse several GPUs: the examples would use only one of them."""
    if any(len(place.gpus) > 1 for place in placements):
        raise InputError(
            f"--on {on}: every example uses only one GPU", "gpu:1",
            "`teho scale -- COMMAND` measures your own program on several GPUs",
        )  # fmt: skip


def _default_places(machine: Machine, *, all_cores: bool) -> str:
    """Return the placements that are compared without `--on`."""
    between = []
    count = 2
    while all_cores and count < len(machine.logical_cores):
        between.append(f"cpu:{count}")
        count *= 2
    return ",".join(["cpu:1", *between, "cpu:all", "gpu:1"])


def _memory_bytes() -> int | None:
    """Return four fifths of the free memory: the limit of a sweep on the CPU."""
    from teho.devices.host.source import HostSource, describe_host

    source = HostSource(None, (), os.environ)
    readings = source.read()["node"]
    source.close()
    limits = {
        "node_memory_used_bytes": describe_host().memory_bytes,
        "job_memory_bytes": source.cgroup_limit_bytes,
    }
    left = [
        limit - used
        for name, limit in limits.items()
        if limit is not None and isinstance(used := readings.get(name), int)
    ]
    return min(left) * 4 // 5 if left else None


def _show(bench: Bench, output: Output, path: Path | None) -> None:
    from teho.show.build.bench import bench_document
    from teho.show.plot.bench import draw

    drawings = {one.name: partial(draw, one) for one in bench.results if one.timings}
    show_and_draw(output, bench_document(bench), bench, drawings, path)
