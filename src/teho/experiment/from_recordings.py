"""A comparison of runs that were recorded before, wherever that was."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from teho.errors import InputError
from teho.experiment.compare import summed_up, terms_of
from teho.experiment.outputs import Printed, other_results, printed_by
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.recorded import EARLY
from teho.experiment.sample import sample_of
from teho.experiment.verdict import judge
from teho.explain.wording import joined
from teho.model.compared import Compared, Contest, Point, Sample
from teho.model.run import Run
from teho.store.index import find_run, list_runs
from teho.store.read import read_run

__all__ = ["compare_recorded", "runs_named"]

_VARIANT = re.compile(r"(cpu|gpu):[1-9][0-9]{0,5}")
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[+-]?[0-9]{1,3})?")


def runs_named(text: str, home: Path) -> list[tuple[Path, Run]]:
    """Return the recordings that are meant.

    Args:
        text: `KEY=VALUE`, a tag that they have in common, or ids, names and directories,
            separated by commas.
        home: the directory of all recordings.

    Raises:
        RecordingError: one of them is not there, or does not read.
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
                next_step="`teho list` shows those that are there",
            )
        return found
    paths = [find_run(one.strip(), home) for one in text.split(",") if one.strip()]
    return [(path, read_run(path)) for path in dict.fromkeys(paths)]


def compare_recorded(
    runs: Sequence[tuple[Path, Run]], prices: Prices | None, gpu_cores: int | None
) -> Compared:
    """Return what recordings say; each variant's are taken as rounds, in the order of time.

    A variant is what a recording's tag `variant` says, such as `cpu:2`, else what the run had of
    its nodes: `gpu:N` where there are GPUs, `cpu:N` where not. If one other tag has different
    numbers in them, that is what was swept.

    Args:
        runs: in any order.
        prices: of a site; None: none was named.
        gpu_cores: how many cores cost as much as a GPU, where the user says it.

    Raises:
        RecordingError: one of them does not read.
        InputError: no recording came to its end, or one variant has several commands.
    """
    # What somebody broke off says nothing.
    runs = sorted(
        (one for one in runs if not (one[1].end and one[1].end.on_purpose == EARLY)),
        key=lambda one: one[1].started_at,
    )
    if not runs:
        raise InputError("no recording that came to an end", "one of each variant, or more")
    swept = _swept([run for _, run in runs])
    _refuse_unlike_commands([run for _, run in runs], swept)
    found: dict[float | None, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    went: dict[float | None, list[tuple[str, Run]]] = defaultdict(list)
    told: dict[float | None, dict[str, list[Printed]]] = defaultdict(lambda: defaultdict(list))
    unknown = 0
    places: dict[str, Placement] = {}
    for path, run in runs:
        place = _placement(run)
        places.setdefault(place.name, place)
        value = float(run.tags[swept]) if swept else None
        sample = sample_of(run, path, None)
        found[value][place.name].append(sample)
        if not sample.why:
            printed = printed_by(path, is_whole=sample.is_whole)
            if printed:
                told[value][place.name].append(printed)
            unknown += printed is None
        went[value].append((place.name, run))
    # As they were run: few cores first, GPUs last.
    ordered = sorted(places.values(), key=_order)
    terms, unit, notes = terms_of(ordered, prices, gpu_cores)
    notes = [*notes, *_unlike([run for _, run in runs])]
    commands = {run.command for _, run in runs}
    if len(commands) > 1 and not swept:
        notes = [*notes, f"These are runs of {len(commands)} different commands."]
    points = [
        _with_turns(
            judge(
                {place: found[value][place.name] for place in ordered},
                terms,
                value,
                other_results({place.name: told[value][place.name] for place in ordered}),
                unrun="nothing is recorded of it",
            ),
            went[value],
        )
        for value in sorted(found, key=lambda value: value or 0.0)
    ]
    return summed_up(
        points,
        swept,
        id=",".join(sorted({run.tags.get("compare", "") for _, run in runs} - {""})),
        command=runs[0][1].command,
        site=prices.site if prices else "",
        cost_unit=unit,
        notes=(*notes, *([_not_kept(unknown, len(runs))] if unknown else ())),
    )


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
    of_these = "these runs" if unknown == count else f"{unknown} of these {count} runs"
    return (
        f"What {of_these} printed was not kept, so it was not compared: "
        "`teho run --keep-output` keeps it."
    )


def _with_turns(point: Point, went: Sequence[tuple[str, Run]]) -> Point:
    """Return a point with a sentence on whether those that it compares took turns.

    Args:
        point: what the runs say.
        went: the variant of each run, in the order of time.
    """
    if point.contest is None:
        return point
    return replace(point, notes=(*point.notes, _turns(point.contest, went)))


def _turns(contest: Contest, went: Sequence[tuple[str, Run]]) -> str:
    two = {contest.smaller, contest.larger}
    own = [(name, run) for name, run in went if name in two]
    before = "They were recorded before,"
    ended = [(run.end.at, after) for (_, run), (_, after) in pairwise(own) if run.end]
    if any(at > after.started_at for at, after in ended):
        return (
            f"{before} and some of them at the same time: on one node, they disturbed each other."
        )
    names = [name for name, _ in own]
    rounds = [set(names[first : first + 2]) for first in range(0, len(names) - 1, 2)]
    if all(round_ == two for round_ in rounds):
        return f"{before} and took turns."
    return f"{before} and did not take turns: what changed meanwhile is in the figures."


def _swept(runs: Sequence[Run]) -> str:
    """Return the one tag that all of them have, with different numbers; empty: there is none."""
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
    """Say which variants ran on GPUs or CPUs of several kinds: that is no matter of chance."""
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        place = _placement(run)
        cpus = [node.cpu_model for node in run.nodes if node.cpu_model]
        kinds[place.name] |= dict.fromkeys([gpu.name for gpu in place.gpus] or cpus)
    return [
        f"Runs of {name} were on unlike machines, and are counted as one: {joined(list(own))}."
        for name, own in kinds.items()
        if len(own) > 1
    ]


def _order(place: Placement) -> tuple[str, int]:
    kind, _, count = place.name.partition(":")
    return kind, int(count)
