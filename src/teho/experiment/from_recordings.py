"""A comparison of runs that were recorded before, wherever that was."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from teho.errors import InputError
from teho.experiment.compare import terms_of
from teho.experiment.contest import judge
from teho.experiment.placement import Placement
from teho.experiment.prices import Prices
from teho.experiment.sample import sample_of
from teho.model.compared import Compared, Sample
from teho.model.run import Run
from teho.store.index import find_run, list_runs
from teho.store.read import read_run

__all__ = ["compare_recorded", "runs_named"]


def runs_named(text: str, home: Path) -> list[tuple[Path, Run]]:
    """Return the recordings that are meant, oldest first.

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
    """Return what recordings say; each variant's are taken as rounds, in their order.

    A variant is what a recording's tag `variant` says, else what it had of its node: `gpu:N`
    where there are GPUs, `cpu:N` where not.

    Args:
        runs: in the order of time.
        prices: of a site; None: none was named.
        gpu_cores: how many cores cost as much as a GPU, where the user says it.

    Raises:
        RecordingError: one of them does not read.
        InputError: they are not of one program.
    """
    found: dict[Placement, list[Sample]] = defaultdict(list)
    commands = {run.command for _, run in runs}
    for path, run in runs:
        found[_placement(run)].append(sample_of(run, path, None))
    # As they were run: few cores first, GPUs last.
    ordered = dict(sorted(found.items(), key=lambda item: _order(item[0])))
    terms, unit, notes = terms_of(list(ordered), prices, gpu_cores)
    if len(commands) > 1:
        notes = [*notes, f"These are runs of {len(commands)} different commands."]
    remark = "They were recorded before: whether they took turns, nobody knows."
    point = judge(ordered, terms, notes=[remark])
    return Compared(
        id=",".join(sorted({run.tags.get("compare", "") for _, run in runs} - {""})),
        command=runs[0][1].command,
        outcome=point.outcome,
        verdict=point.verdict,
        points=(point,),
        site=prices.site if prices else "",
        cost_unit=unit,
        notes=tuple(notes),
    )


def _placement(run: Run) -> Placement:
    devices = tuple(device for node in run.nodes for device in node.devices)
    cores = tuple(range(sum(len(node.cores) for node in run.nodes)))
    name = run.tags.get("variant") or (f"gpu:{len(devices)}" if devices else f"cpu:{len(cores)}")
    return Placement(name, cores, devices if name.startswith("gpu:") else ())


def _order(place: Placement) -> tuple[int, int, str]:
    return len(place.gpus), len(place.cores), place.name
