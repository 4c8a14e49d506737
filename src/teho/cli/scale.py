"""`teho scale`: how far more cores or GPUs pay."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from teho.cli.ended_early import EndedEarly
from teho.cli.output import Output, output_options
from teho.cli.plot_file import plot_file
from teho.cli.repeated_runs import RepeatedRuns, prices_of, read_times
from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from teho.model.scaled import Scaled

__all__ = ["command"]


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho scale -- python train.py
  teho scale --on gpu:1,gpu:2,gpu:4 -- torchrun --nproc-per-node {n} train.py
  teho scale --on cpu:1,cpu:8,cpu:64 --weak -- ./solver --cells {n}00000
  teho scale --for 30min --site mahti --plot scaling.svg -- python train.py""",
)
@click.option("--on", metavar="WHERE,…",
              help="On how many cores or GPUs.  [default: 1, 2, 4 … all]")  # fmt: skip
@click.option("--weak", is_flag=True,
              help="Each of N does the work of one; else all together do.")  # fmt: skip
@click.option("--for", "for_", metavar="TIME", default="10min", show_default=True,
              help="How long it may take.")  # fmt: skip
@click.option("--window", metavar="TIME", default="10s", show_default=True,
              help="How long a run is measured that shows its steps.")  # fmt: skip
@click.option("--full", is_flag=True, help="Let every run come to its end.")
@click.option("--site", metavar="CLUSTER", help="Whose prices count.  [default: where this runs]")
@click.option("--plot", metavar="FILE", help="Draw it: .svg or .png.")
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
    """Run COMMAND on 1, 2, 4 … GPUs or cores in turns, and say how far more of them pay.

    {n} in COMMAND stands for the number. Each run is a recording. One that shows its steps is
    ended once its pace is known, any other runs to its end. Exit code: 0 there is a verdict, 1
    the time or the evidence did not suffice.
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
        raise InputError(f"--on {on}", "all of them cores, or all of them GPUs")
    placements.sort(key=size_of)
    terms, unit, remarks = terms_of(placements, prices_of(site), None)
    wish = ScaleRequest(argv, placements, terms, for_s, weak, unit, (*notes, *remarks))

    runs = RepeatedRuns(argv[0], [place.name for place in placements], for_s)

    def argv_at(place: Placement) -> list[str]:
        return [word.replace("{n}", str(size_of(place))) for word in argv]

    tags = {"compare": runs.id}
    runner = Runner(argv_at, os.environ, runs.home, tags, None if full else window_s)
    with EndedEarly() as ended:
        scaled = scale(wish, runner, runs.tell)
    from teho.show.build.scale import scale_document

    output.show(scale_document(scaled), scaled, pictures=lambda: _pictures(scaled))
    if picture is not None:
        from teho.show.plot.scale import draw_scaled

        picture.write_bytes(draw_scaled(scaled, picture.suffix[1:], salt=runs.id))
    ended.leave(well=scaled.outcome != "not_enough_evidence")


def _pictures(scaled: Scaled) -> Iterator[bytes]:
    from teho.show.plot.scale import draw_scaled

    yield draw_scaled(scaled, "svg", salt="scale")
