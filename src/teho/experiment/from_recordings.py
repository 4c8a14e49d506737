"""Compares runs that were recorded before."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from teho.errors import InputError
from teho.experiment.compare import summed_up, terms_of
from teho.experiment.outputs import Printed, other_results, printed_by
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.recorded import EARLY
from teho.experiment.sample import sample_of
from teho.experiment.verdict import Terms, judge
from teho.explain.wording import joined
from teho.model.compared import Compared, PairComparison, Point, Sample
from teho.model.run import Run
from teho.patterns import lazy_pattern
from teho.store.index import find_run, list_runs
from teho.store.read import read_run

__all__ = ["compare_recorded", "runs_named"]

_VARIANT = lazy_pattern(r"(cpu|gpu):[1-9][0-9]{0,5}")
_NUMBER = lazy_pattern(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,3})?")


def runs_named(text: str, home: Path) -> list[tuple[Path, Run]]:
    """Return the recordings that a text names.

    Args:
        text: a common tag, `KEY=VALUE`, or ids, names and directories, separated by commas.
        home: the directory of all recordings.

    Raises:
        RecordingError: a recording does not exist or cannot be read.
        InputError: no recording has this tag.
    """
    key, sign, value = text.partition("=")
    if sign and not os.path.lexists(text):
        found = [
            (path, read_run(path))
            for path, run in list_runs(home)
            if run and run.tags.get(key) == value
        ]
        if not found:
            raise InputError(
                f"no recording has the tag {text}",
                next_step="`teho list` shows all recordings",
            )
        return found
    paths = [find_run(one.strip(), home) for one in text.split(",") if one.strip()]
    return [(path, read_run(path)) for path in dict.fromkeys(paths)]


class _Row(NamedTuple):
    """One recorded run."""

    value: float | None
    """Of what was swept."""
    place: Placement
    run: Run
    sample: Sample
    printed: Printed | None


def compare_recorded(
    runs: Sequence[tuple[Path, Run]], prices: Prices | None, gpu_cores: int | None
) -> Compared:
    """Return the comparison of recordings. The runs of each variant count as rounds, by time.

    A recording's tag `variant` gives its variant, such as `cpu:2`. Without the tag it is `gpu:N` if
    the run had GPUs, otherwise `cpu:N`. If one other tag has different numbers, it was swept.

    Args:
        runs: in any order.
        prices: of a site; None: no site was named.
        gpu_cores: number of cores that cost as much as a GPU, if the user gave it.

    Raises:
        RecordingError: a recording cannot be read.
        InputError: no recording is left, or one variant has several commands.
    """
    # A run that was stopped with its comparison has no complete figures.
    runs = sorted(
        (one for one in runs if not (one[1].end and one[1].end.on_purpose == EARLY)),
        key=lambda one: one[1].started_at,
    )
    if not runs:
        raise InputError(
            "none of the recorded runs ran to its end", "at least one complete run of each variant"
        )
    swept = _swept([run for _, run in runs])
    _refuse_unlike_commands([run for _, run in runs], swept)
    rows = [_row(path, run, swept) for path, run in runs]
    # In the order of running: few cores first, GPUs last.
    places = sorted({row.place.name: row.place for row in reversed(rows)}.values(), key=_order)
    terms, unit, notes = terms_of(places, prices, gpu_cores)
    notes += _unlike([run for _, run in runs])
    commands = {run.command for _, run in runs}
    if len(commands) > 1 and not swept:
        notes.append(f"These are runs of {len(commands)} different commands.")
    unknown = sum(row.printed is None and not row.sample.why for row in rows)
    if unknown:
        notes.append(_not_kept(unknown, len(runs)))
    values = sorted({row.value for row in rows}, key=lambda value: value or 0.0)
    return summed_up(
        [
            _point([row for row in rows if row.value == value], places, terms, value)
            for value in values
        ],
        swept,
        id=",".join(sorted({run.tags.get("compare", "") for _, run in runs} - {""})),
        command=runs[0][1].command,
        site=prices.site if prices else "",
        cost_unit=unit,
        notes=tuple(notes),
    )


def _row(path: Path, run: Run, swept: str) -> _Row:
    sample = sample_of(run, path, None)
    printed = None if sample.why else printed_by(path, is_whole=sample.is_whole)
    value = float(run.tags[swept]) if swept else None
    return _Row(value, _placement(run), run, sample, printed)


def _point(
    rows: Sequence[_Row], places: Sequence[Placement], terms: Terms, value: float | None
) -> Point:
    runs: dict[Placement, list[Sample]] = {place: [] for place in places}
    printed: dict[str, list[Printed]] = {place.name: [] for place in places}
    by_name = {place.name: place for place in places}
    for row in rows:
        runs[by_name[row.place.name]].append(row.sample)
        if row.printed:
            printed[row.place.name].append(row.printed)
    point = judge(runs, terms, value, other_results(printed), unrun="it was not recorded")
    if point.comparison is None:
        return point
    turns = _turns(point.comparison, [(row.place.name, row.run) for row in rows])
    return replace(point, notes=(*point.notes, turns))


def _refuse_unlike_commands(runs: Sequence[Run], swept: str) -> None:
    """Refuse recordings of several commands that would count as repetitions of one variant.

    Raises:
        InputError: two recordings of one variant have different commands and no common tag.
    """
    commands: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
    for run in runs:
        commands[_placement(run).name, run.tags.get(swept, "")].add(run.command)
    for (place, _), several in commands.items():
        if len(several) > 1 and not all("compare" in run.tags for run in runs):
            raise InputError(
                f"--recorded: {len(several)} different commands ran on {place}",
                "the same command in all recordings of a variant",
                f"`teho diff {runs[0].id} {runs[-1].id}` compares two runs",
            )


def _not_kept(unknown: int, count: int) -> str:
    these = "these runs" if unknown == count else f"{unknown} of these {count} runs"
    return (
        f"The output of {these} was not stored, so it was not compared. `teho run --keep-output` "
        f"stores it."
    )


def _turns(comparison: PairComparison, went: Sequence[tuple[str, Run]]) -> str:
    """Return a sentence about whether the compared variants took turns.

    Args:
        comparison: the compared variants.
        went: the variant of each run, in the order of time.
    """
    two = {comparison.smaller, comparison.larger}
    own = [(name, run) for name, run in went if name in two]
    ended = [(run.end.at, after) for (_, run), (_, after) in pairwise(own) if run.end]
    if any(at > after.started_at for at, after in ended):
        return (
            "Some of these runs were recorded at the same time. If these runs shared a node, they "
            "slowed each other down."
        )
    names = [name for name, _ in own]
    rounds = [set(names[first : first + 2]) for first in range(0, len(names) - 1, 2)]
    if all(round_ == two for round_ in rounds):
        return "These recorded runs alternated between the two variants."
    return (
        "These recorded runs did not alternate between the two variants, so the results include "
        "changes of the machine between the runs."
    )


def _swept(runs: Sequence[Run]) -> str:
    """Return the only tag that all runs have with different numbers; empty: not exactly one."""
    names = set.intersection(*(set(run.tags) for run in runs)) - {"compare", "variant"}
    found = [name for name in names if _are_numbers({run.tags[name] for run in runs})]
    return found[0] if len(found) == 1 else ""


def _are_numbers(texts: set[str]) -> bool:
    are_numbers = all(_NUMBER.fullmatch(text) and float(text) > 0 for text in texts)
    return len(texts) > 1 and are_numbers


def _placement(run: Run) -> Placement:
    devices = tuple(device for node in run.nodes for device in node.devices)
    cores = tuple(range(sum(len(node.cores) for node in run.nodes)))
    tagged = run.tags.get("variant", "")
    name = tagged if _VARIANT.fullmatch(tagged) else ""
    name = name or (f"gpu:{len(devices)}" if devices else f"cpu:{max(len(cores), 1)}")
    return Placement(name, cores, devices if name.startswith("gpu:") else ())


def _unlike(runs: Sequence[Run]) -> list[str]:
    """Return sentences about variants that ran on several models of GPUs or CPUs."""
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        place = _placement(run)
        cpus = [node.cpu_model for node in run.nodes if node.cpu_model]
        kinds[place.name] |= dict.fromkeys([gpu.name for gpu in place.gpus] or cpus)
    return [
        f"Runs of {name} count as one variant, but used different models of CPU or GPU: "
        f"{joined(list(own))}."
        for name, own in kinds.items()
        if len(own) > 1
    ]


def _order(place: Placement) -> tuple[str, int]:
    kind, _, count = place.name.partition(":")
    return kind, int(count)
