"""`teho compare`: the same program on other cores and GPUs, and which of them are worth it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from teho.cli import say
from teho.cli.ended_early import EndedEarly
from teho.cli.output import Output, output_options
from teho.cli.plot_file import plot_file
from teho.cli.repeated_runs import RepeatedRuns, prices_of, read_times
from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from teho.experiment.compare import CompareRequest
    from teho.experiment.prices import Prices
    from teho.model.compared import Compared

__all__ = ["command"]

_ON = "cpu:1,cpu:all,gpu:1,gpu:all"
_WITHOUT_EFFECT = {
    "with --recorded": ("on", "for_", "window", "full", "sweep", "submit", "repeats"),
    "with --cluster": ("for_", "sweep", "site", "gpu_cost", "plot", "form", "path", "short", "why"),
    "without --cluster": ("submit", "repeats"),
}


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  teho compare -- python train.py
  teho compare --on cpu:1,cpu:all --full -- ./solver input.nml
  teho compare --for 30min --site mahti -- python train.py --out /tmp/trial
  teho compare --sweep rows=1000,10000,100000 -- python fit.py --rows {rows}
  teho compare --cluster narval --on cpu:16,gpu:1 --submit '--account def-ada' -- python fit.py
  teho compare --recorded compare=1f0c2a9b""",
)
@click.option("--on", "on", metavar="WHERE,…",
              help=f"On how many cores and GPUs of this job.  [default: {_ON}; with --cluster: "
              "one core, the cores that come with a GPU, one GPU]")  # fmt: skip
@click.option("--for", "for_", metavar="TIME", default="10min", show_default=True,
              help="How long it may take.")  # fmt: skip
@click.option("--window", metavar="TIME", default="10s", show_default=True,
              help="How long a run is measured that shows its steps.")  # fmt: skip
@click.option("--full", is_flag=True, help="Let every run come to its end.")
@click.option("--sweep", metavar="NAME=N,…",
              help="For each of these numbers; {NAME} in COMMAND stands for it.")  # fmt: skip
@click.option("--site", metavar="CLUSTER", help="Whose prices count.  [default: where this runs]")
@click.option("--gpu-cost", type=click.IntRange(min=1), metavar="CORES",
              help="How many core-hours a GPU-hour is worth.")  # fmt: skip
@click.option("--recorded", metavar="TAG=VALUE|RUN,…",
              help="Compare recordings that are there; no COMMAND.")  # fmt: skip
@click.option("--cluster", metavar="NAME", help="Submit each variant as an array of jobs.")
@click.option("--submit", metavar="OPTIONS", default="",
              help="With --cluster: more options of `teho submit`.")  # fmt: skip
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True,
              help="With --cluster: jobs of each variant.")  # fmt: skip
@click.option("--plot", metavar="FILE", help="Draw it: .svg or .png.")
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
    """Run COMMAND on few cores, all cores and the GPUs in turns, and say which is worth it.

    Each run is a recording. One that shows its steps is ended once its pace is known, any other
    runs to its end; if all come to their end, whole times are compared. COMMAND is started
    several times on each, and each time writes what it writes. Exit code: 0 there is a verdict,
    1 the time or the evidence did not suffice.
    """
    if bool(argv) == (recorded is not None):
        raise click.UsageError("Either '-- COMMAND…' or --recorded: one of the two.")
    if cluster is not None and not argv:
        raise click.UsageError("--cluster submits a program: '-- COMMAND…'.")
    _refuse(f"with{'' if cluster else 'out'} --cluster" if argv else "with --recorded")
    if cluster is not None:
        from teho.cli.compare_jobs import submit_variants

        submit_variants(cluster, on, repeats, None if full else window, submit, argv)
        return
    ended, picture = EndedEarly(), plot_file(plot)
    if recorded is not None:
        compared = _recorded(recorded, prices_of(site), gpu_cost)
    else:
        for_s, window_s = read_times(for_, window)
        wish = _wish(on, for_s, sweep, argv, prices_of(site), gpu_cost)
        compared = _compare(wish, None if full else window_s, ended)
    from teho.show.build.compare import compare_document

    output.show(compare_document(compared), compared, pictures=lambda: _pictures(compared))
    if picture is not None and any(one.rates for at in compared.points for one in at.variants):
        from teho.show.plot.compare import draw_compared

        picture.write_bytes(draw_compared(compared, picture.suffix[1:]))
    elif picture is not None:
        say(f"--plot {plot}: nothing was measured, and nothing is drawn")
    ended.leave(well=compared.outcome != "not_enough_evidence")


def _pictures(compared: Compared) -> Iterator[bytes]:
    from teho.show.plot.compare import draw_compared

    if any(one.rates for at in compared.points for one in at.variants):
        yield draw_compared(compared, "svg")


def _refuse(how: str) -> None:
    """Refuse options that somebody gave and that have no effect so."""
    context = click.get_current_context()
    for one in context.command.params:
        source = context.get_parameter_source(str(one.name))
        if one.name in _WITHOUT_EFFECT[how] and source is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{one.opts[0]} has no effect {how}.")


def _recorded(text: str, prices: Prices | None, gpu_cost: int | None) -> Compared:
    from teho.config.settings import load_settings
    from teho.experiment.from_recordings import compare_recorded, runs_named

    return compare_recorded(runs_named(text, load_settings().home_directory), prices, gpu_cost)


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
        # As many cores as a GPU costs, unless they are among these already.
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


def _compare(wish: CompareRequest, window_s: float | None, ended: EndedEarly) -> Compared:
    from teho.experiment.compare import compare
    from teho.experiment.recorded import Runner

    runs = RepeatedRuns(wish.command[0], [place.name for place in wish.placements], wish.for_s)

    def run_at(value: float | None) -> Runner:
        tags = {"compare": runs.id} | ({wish.swept: f"{value:.15g}"} if value is not None else {})
        argv = [_filled(word, wish.swept, value) for word in wish.command]
        return Runner(lambda _: argv, os.environ, runs.home, tags, window_s)

    with ended:
        return compare(wish, runs.id, run_at, runs.tell)


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
        raise InputError(f"--sweep {text}: {{{name}}} is not in the command", f"{{{name}}} in it")
    return name, values
