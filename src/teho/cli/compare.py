"""`teho compare`: one program on several numbers of cores and GPUs, and which is faster."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import click

from teho.cli.declare import first_given, option, program_command
from teho.cli.ended_early import EndedEarly
from teho.cli.output import Output, output_options
from teho.cli.plot_file import plot_file, show_and_draw
from teho.cli.repeated_runs import RepeatedRuns, measuring_options, prices_of, read_times
from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from teho.experiment.compare import CompareRequest
    from teho.experiment.prices import Prices
    from teho.model.compared import Compared
    from teho.model.run import Run

__all__ = ["command"]

_ON = "cpu:1,cpu:all,gpu:1,gpu:all"
_WITHOUT_EFFECT = {
    "with --recorded": ("on", "for_", "window", "full", "sweep", "submit", "repeats"),
    "with --cluster": ("for_", "sweep", "site", "gpu_cost", "plot", "form", "path", "short", "why"),
    "without --cluster": ("submit", "repeats"),
}


@program_command("""\
  teho compare -- python train.py
  teho compare --on cpu:1,cpu:all --full -- ./solver input.nml
  teho compare --for 30min --site roihu -- python train.py --out /tmp/trial
  teho compare --sweep rows=1000,10000,100000 -- python fit.py --rows {rows}
  teho compare --cluster narval --on cpu:16,gpu:1 --submit '--account def-ada' -- python fit.py
  teho compare --recorded compare=1f0c2a9b""")
@option("--on PLACE,…", "Compare these numbers of cores and GPUs of this job.",
        unset=f"{_ON}; with --cluster: one core, the cores that come with a GPU, one GPU"
        )  # fmt: skip
@measuring_options
@option("--sweep NAME=N,…",
        "Compare once for each of these numbers: the number replaces {NAME} in COMMAND.",
        unset="COMMAND unchanged")  # fmt: skip
@option("--gpu-cost CORES", "Set how many core-hours a GPU-hour costs.",
        unset="the cluster's prices", type=click.IntRange(min=1))  # fmt: skip
@option("--recorded TAG=VALUE|RUN,…", "Compare these recordings, without running COMMAND.",
        unset="run COMMAND")  # fmt: skip
@option("--cluster NAME", "Submit each variant as an array of jobs to this cluster.",
        unset="run in this job")  # fmt: skip
@option("--submit OPTIONS", "Pass these options to `teho submit`; only with --cluster.",
        unset="none",
        default="")  # fmt: skip
@option("--repeats N", "Submit N jobs for each variant; only with --cluster.",
        type=click.IntRange(min=1), default=3)  # fmt: skip
@output_options()
@click.argument("argv", metavar="-- COMMAND…", nargs=-1, type=click.UNPROCESSED)
def command(
    on: str | None,
    for_: str,
    window: str,
    full: bool,
    sweep: str | None,
    site: str | None,
    gpu_cost: int | None,
    recorded: str | None,
    cluster: str | None,
    submit: str,
    repeats: int,
    plot: str | None,
    output: Output,
    argv: tuple[str, ...],
) -> None:
    """Run COMMAND in turn on one core, all cores and the GPUs, and say which is the fastest.

    If Teho can count the steps of COMMAND, Teho ends each run when the step rate is known, and
    compares step rates. Otherwise each run ends by itself. COMMAND runs several times on each
    placement, and writes its files each time. Exit code: 0 if there is a verdict, 1 if more time or
    more runs are needed.

    Reads: the catalogue, and the recordings of the runs.

    Writes: a recording of each run in TEHO_HOME; the -o and --plot files.

    Network: with --cluster, commands of the scheduler. If whole runs were measured on a known
    cluster, also asks the scheduler how long your past jobs waited. Asks a dcgm-exporter (on this
    node, or at DCGM_EXPORTER_URL) about GPUs that are older than Hopper.
    """
    if bool(argv) == (recorded is not None):
        raise click.UsageError("Give one of the two: '-- COMMAND…' or --recorded.")
    if cluster is not None and not argv:
        raise click.UsageError("--cluster needs a program to submit: '-- COMMAND…'.")
    _refuse(f"with{'' if cluster else 'out'} --cluster" if argv else "with --recorded")
    if cluster is not None:
        from teho.cli.compare_jobs import submit_variants

        submit_variants(cluster, on, repeats, None if full else window, submit, argv)
        return
    picture, ended = plot_file(plot), EndedEarly()
    if recorded is not None:
        compared = _recorded(recorded, prices_of(site), gpu_cost)
    else:
        for_s, window_s = read_times(for_, window)
        wish = _wish(on, for_s, sweep, argv, prices_of(site), gpu_cost)
        runs = RepeatedRuns(wish.command[0], [place.name for place in wish.placements], for_s)
        ended, compared = runs.ended, _compare(wish, None if full else window_s, runs)
        compared = _with_queue(compared, ())
    from teho.show.build.compare import compare_document
    from teho.show.plot.compare import draw_compared

    is_measured = any(one.rates for at in compared.points for one in at.variants)
    drawings = {"compare": partial(draw_compared, compared)} if is_measured else {}
    show_and_draw(output, compare_document(compared), compared, drawings, picture)
    ended.leave(well=compared.outcome != "not_enough_evidence")


def _refuse(how: str) -> None:
    """Refuse options of the command line that have no effect in this mode."""
    if given := first_given(_WITHOUT_EFFECT[how]):
        raise click.UsageError(f"{given} has no effect {how}.")


def _recorded(text: str, prices: Prices | None, gpu_cost: int | None) -> Compared:
    from teho.config.settings import load_settings
    from teho.experiment.from_recordings import compare_recorded, runs_named

    runs = runs_named(text, load_settings().home_directory)
    return _with_queue(compare_recorded(runs, prices, gpu_cost), [run for _, run in runs])


def _with_queue(compared: Compared, runs: Sequence[Run]) -> Compared:
    """Add the waits of the user's past jobs, if whole runs were measured on this cluster.

    Args:
        compared: the result.
        runs: recordings that may be of other clusters; none: it was measured here.
    """
    from teho.experiment.queue import has_whole_runs, with_queue

    if not has_whole_runs(compared):
        return compared
    from teho.cli.here import cluster_here
    from teho.explain.bill import cluster_of
    from teho.schedulers.command import run as ask
    from teho.schedulers.history import past_jobs_of_user

    # A mistake in a file of the catalogue must not cost the result.
    with suppress(InputError):
        here = cluster_here()
        if here is None or any(cluster_of(run) != here for run in runs):
            return compared
        return with_queue(compared, here.title, past_jobs_of_user(here.scheduler, ask))
    return compared


def _wish(
    on: str | None,
    for_s: float,
    sweep: str | None,
    argv: tuple[str, ...],
    prices: Prices | None,
    gpu_cost: int | None,
) -> CompareRequest:
    from teho.experiment.compare import CompareRequest, terms_of
    from teho.experiment.placement import needed_placements, read_placements, this_machine

    swept, values = _swept(sweep, argv)
    machine = this_machine()
    where = _ON if on is None else on
    placements, notes = needed_placements(where, machine, "--on")
    terms, unit, remarks = terms_of(placements, prices, gpu_cost)
    equal = min(terms.same_cost_cores.values(), default=None)
    if on is None and equal is not None and equal <= len(machine.logical_cores):
        # Add the number of cores that costs the same as a GPU.
        placements, _ = read_placements(f"cpu:1,cpu:{equal},{_ON}", machine, "--on")
        terms, unit, remarks = terms_of(placements, prices, gpu_cost)
    return CompareRequest(
        command=argv,
        placements=placements,
        terms=terms,
        for_s=for_s,
        swept=swept,
        values=values,
        site=prices.site if prices else "",
        cost_unit=unit,
        notes=(*notes, *remarks),
    )


def _compare(wish: CompareRequest, window_s: float | None, runs: RepeatedRuns) -> Compared:
    from teho.experiment.compare import compare
    from teho.experiment.recorded import Runner

    def run_at(value: float | None) -> Runner:
        tags = {"compare": runs.id} | ({wish.swept: f"{value:.15g}"} if value is not None else {})
        argv = [_filled(word, wish.swept, value) for word in wish.command]
        return Runner(lambda _: argv, os.environ, runs.home, tags, window_s)

    with runs.running():
        return compare(wish, runs.id, run_at, runs.progress)


def _filled(word: str, swept: str, value: float | None) -> str:
    return word if value is None else word.replace(f"{{{swept}}}", f"{value:.15g}")


def _swept(text: str | None, argv: tuple[str, ...]) -> tuple[str, tuple[float | None, ...]]:
    if text is None:
        return "", (None,)
    name, sign, numbers = text.partition("=")
    try:
        values = tuple(sorted({float(number) for number in numbers.split(",")}))
    except ValueError:
        values = ()
    if not sign or not name.isidentifier() or not values or not 0 < values[0] <= values[-1] < 1e300:
        raise InputError(f"--sweep {text}", "NAME=NUMBER,…, such as rows=1000,10000")
    if not any(f"{{{name}}}" in word for word in argv):
        raise InputError(
            f"--sweep {text}: {{{name}}} is not in the command", f"{{{name}}} in COMMAND"
        )
    return name, values
