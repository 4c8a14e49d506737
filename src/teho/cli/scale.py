"""`teho scale`: how much faster a program gets with more cores or GPUs."""

from __future__ import annotations

import os
from functools import partial

import click

from teho.cli.declare import flag, option, program_command
from teho.cli.output import Output, output_options
from teho.cli.plot_file import plot_file, show_and_draw
from teho.cli.repeated_runs import RepeatedRuns, measuring_options, prices_of, read_times
from teho.errors import InputError

__all__ = ["command"]


@program_command("""\
  teho scale -- python train.py
  teho scale --on gpu:1,gpu:2,gpu:4 -- torchrun --nproc-per-node {n} train.py
  teho scale --on cpu:1,cpu:8,cpu:64 --weak -- ./solver --cells {n}00000
  teho scale --for 30min --site roihu --plot scaling.svg -- python train.py""")
@option("--on PLACE,…", "Measure on these numbers of cores or GPUs.", unset="1, 2, 4 … all")
@flag("--weak",
      "Measure weak scaling: the work grows with the number of GPUs or cores.  [default: strong "
      "scaling]")  # fmt: skip
@measuring_options
@output_options()
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED, required=True)
def command(
    on: str | None,
    weak: bool,
    for_: str,
    window: str,
    full: bool,
    site: str | None,
    plot: str | None,
    output: Output,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND in turn on 1, 2, 4 … GPUs or cores, and say how many are useful.

    Teho says up to which number of GPUs or cores COMMAND gets faster. In each run, the number of
    GPUs or cores replaces {n} in COMMAND. If Teho can count the steps of COMMAND, it ends each run
    when the step rate is known. Exit code: 0 if there is a verdict, 1 if more time or more runs are
    needed.

    Reads: the catalogue, and the recordings of the runs.

    Writes: a recording of each run in TEHO_HOME; the -o and --plot files.

    Network: asks a dcgm-exporter (on this node, or at DCGM_EXPORTER_URL) about GPUs that are older
    than Hopper.
    """
    from teho.experiment.compare import terms_of
    from teho.experiment.placement import Placement, needed_placements, this_machine
    from teho.experiment.recorded import Runner
    from teho.experiment.scale import ScaleRequest, doublings, scale, size_of

    for_s, window_s = read_times(for_, window)
    picture = plot_file(plot)
    machine = this_machine()
    placements, notes = needed_placements(on or doublings(machine), machine, "--on")
    if len({bool(place.gpus) for place in placements}) != 1:
        raise InputError(f"--on {on}", "only cores, or only GPUs")
    placements.sort(key=size_of)
    terms, unit, remarks = terms_of(placements, prices_of(site), None)
    wish = ScaleRequest(argv, placements, terms, for_s, weak, unit, (*notes, *remarks))

    runs = RepeatedRuns(argv[0], [place.name for place in placements], for_s)

    def argv_at(place: Placement) -> list[str]:
        return [word.replace("{n}", str(size_of(place))) for word in argv]

    tags = {"compare": runs.id}
    runner = Runner(argv_at, os.environ, runs.home, tags, None if full else window_s)
    with runs.running():
        scaled = scale(wish, runner, runs.progress)
    from teho.show.build.scale import scale_document
    from teho.show.plot.scale import draw_scaled

    drawings = {"scale": partial(draw_scaled, scaled)}
    show_and_draw(output, scale_document(scaled), scaled, drawings, picture)
    runs.ended.leave(well=scaled.outcome != "not_enough_evidence")
