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

from teho.cli.ended_early import EndedEarly
from teho.cli.output import Output, output_options
from teho.cli.plot_file import PLOT_HELP, plot_file, show_and_draw
from teho.cli.progress import StatusLine
from teho.errors import InputError
from teho.units import format_duration, parse_duration

if TYPE_CHECKING:
    from teho.bench.examples import BenchExample
    from teho.experiment.placement import Machine, Placement
    from teho.model.bench import Bench

__all__ = ["command"]

_QUICK_S = 50.0
_FULL_S = 600.0
_SHORTEST_S = 5.0


@click.command(
    epilog="""\b
Examples:
  teho bench
  teho bench solve --quick
  teho bench matmul --on cpu:all,gpu:1 --library numpy,torch --plot matmul.svg
  teho bench regression cnn --for 20min -o bench.html
  teho bench --from solve.json --plot solve.svg""",
)
@click.option("--quick", is_flag=True,
              help="Measure fewer and smaller points: under a minute per example.")  # fmt: skip
@click.option("--library", "libraries", metavar="NAME,…", default="",
              help="Compare these libraries: numpy, cupy, jax or torch.  "
              "[default: all that are installed]")  # fmt: skip
@click.option("--on", "on", metavar="PLACE,…", default="",
              help="Compare these placements: cpu:N, cpu:all or gpu:1.  "
              "[default: cpu:1,cpu:all,gpu:1]")  # fmt: skip
@click.option("--python", "python", metavar="PATH", default="",
              help="Use the libraries of this Python.  "
              "[default: `python`, else Teho's]")  # fmt: skip
@click.option("--for", "for_", metavar="TIME", default="",
              help="Stop each example after this time.  "
              "[default: 10min, or 50s with --quick]")  # fmt: skip
@click.option("--plot", "plot", metavar="FILE", default="", help=PLOT_HELP)
@click.option("--from", "stored", metavar="FILE", default="",
              help="Show the results in FILE, written with --format json; measure nothing.  "
              "[default: measure]")  # fmt: skip
@output_options()
@click.argument("names", metavar="[NAME…]", nargs=-1)
def command(
    quick: bool,
    libraries: str,
    on: str,
    python: str,
    for_: str,
    output: Output,
    plot: str,
    stored: str,
    names: tuple[str, ...],
) -> None:
    """Time worked examples on cores and a GPU, and find the size from which one is faster.

    Without NAME, lists the examples. Before Teho times the libraries, it compares their results.
    Exit code: 0 if the results agree, 1 if they differ or no library could be timed.

    Reads: the libraries of the Python, the GPU drivers, the --from file, CIFAR10_PATH.

    Writes: only the -o and --plot files, and temporary files in TMPDIR.

    Network: asks a dcgm-exporter about GPUs before Hopper (on this node, or at DCGM_EXPORTER_URL).
    """
    from teho.bench.examples import EXAMPLES, LIBRARIES
    from teho.bench.verdict import is_sound

    if stored:
        if names:
            raise click.UsageError("Give either NAME or --from, not both.")
        given = {"--quick": quick, "--library": libraries, "--on": on, "--python": python}
        for option, value in {**given, "--for": for_}.items():
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
    with EndedEarly() as ended:
        chosen = words or list(LIBRARIES)
        bench = _measured(examples, chosen, on, _python(python), for_s, quick, ended)
    _show(bench, output, drawn)
    ended.leave(well=all(map(is_sound, bench.results)))


def _one_of(name: str, known: Mapping[str, object], what: str) -> str:
    from teho.config.toml import did_you_mean

    if name not in known:
        raise InputError(f"{name!r} is none of the {what}{did_you_mean(name, known)}")
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
                f"--python {path}", "a Python with NumPy", f"`{path} -m pip install numpy`"
            )
        return path, "as you asked"
    first = shutil.which("python")
    if first and _has_numpy(first):
        return first, "the first `python` on PATH"
    if _has_numpy(sys.executable):
        why = "has no NumPy" if first else "is not there"
        return sys.executable, f"Teho's own Python, because `python` {why}"
    raise InputError(
        f"neither {first or 'a `python` on PATH'} nor Teho's own Python {sys.executable} has NumPy",
        "a Python with the libraries to compare",
        "`teho bench --python PATH`, or load your environment first",
    )


def _has_numpy(python: str) -> bool:
    try:
        asked = subprocess.run(
            [python, "-c", "import numpy"], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _measured(
    examples: Iterable[BenchExample],
    libraries: list[str],
    on: str,
    python: tuple[str, str],
    for_s: float,
    quick: bool,
    ended: EndedEarly,
) -> Bench:
    from datetime import datetime, timezone

    from teho.bench.measure import Effort, measure
    from teho.devices.host.source import describe_host
    from teho.devices.sources import open_gpus
    from teho.experiment.placement import read_placements, this_machine
    from teho.model.bench import Bench
    from teho.version import __version__

    machine = this_machine()
    if on:
        _refuse_several(read_placements(on, machine, "--on")[0], on)
    sources = open_gpus(os.environ)[0]
    results, tell = [], StatusLine()
    try:
        for example in examples:
            wanted = on or _default_places(machine, all_cores=example.sweeps_cores and not quick)
            placements, notes = read_placements(wanted, machine, "--on")
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
                tell=tell,
            )
            results.append(measured)
            if ended.by:
                break
    finally:
        tell("")
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
            f"--on {on}: every example computes on one GPU", "gpu:1",
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
