"""This section shows how long `teho plan` takes, and how long 10,000 plans take in one process.

In the first three rows, each `teho plan` is one process. `teho plan` reads the files about all
clusters, makes a plan, and prints the plan. With `--script`, `teho plan` also loads the templates
of batch scripts and writes a batch script. For the row *10,000 plans in one process*, one process
makes plans for small and large requests. Some of these requests fit on a cluster, and other
requests fit on none of the clusters. The process plans each request on every cluster. We know of no
other tool that plans a job. So this page compares `teho plan` only with `python -c pass`, a Python
program that does nothing.
"""

from __future__ import annotations

import itertools
import sys
import time
from functools import partial

from common import (
    SCRIPTS,
    Figures,
    Row,
    interleave,
    measure_process,
    say,
    stub_environment,
    wall_ms_of,
)

_MANY = 10_000


def measure(*, quick: bool) -> list[Row]:
    teho = str(SCRIPTS / "teho")
    ours = {
        "teho plan": [teho, "plan", "--gpus", "4", "--time", "2h"],
        "teho plan --format json": [teho, "plan", "--gpus", "4", "--format", "json"],
        "teho plan --script": [teho, "plan", "--cluster", "roihu", "--script", "--", "python", "x"],
    }
    floor = {"python -c pass": [sys.executable, "-c", "pass"]}
    with stub_environment() as env:
        calls = {
            name: partial(measure_process, argv, env) for name, argv in {**ours, **floor}.items()
        }
        if not quick:
            interleave(calls, 2)  # byte code and the file system's cache
        ended = interleave(calls, 1 if quick else 21)
    wall_ms = wall_ms_of(ended)
    budgets = {"teho plan": 150, "teho plan --format json": 150}
    rows = [
        Row(
            what=f"`{name}`, wall time",
            unit="ms",
            ours=wall_ms[name],
            peer="`python -c pass`",
            theirs=wall_ms["python -c pass"],
            budget=budgets.get(name),
        )
        for name in ours
    ]
    count = 100 if quick else _MANY
    say(f"{count} plans in one process")
    times_s = [_plans_s(count) for _ in range(1 if quick else 3)]
    what = f"{count:,} plans in one process"
    # 2 ms each: see docs/decisions/pure-plans.md.
    return [*rows, Row(what=what, unit="s", ours=Figures.of(*times_s), budget=20)]


def _plans_s(count: int) -> float:
    """Return the time for plans, without the time to read the catalogue."""
    from teho.clusters.catalogue import load_catalogue
    from teho.model.request import Request
    from teho.planner.answer import answer

    sizes = itertools.product((0, 1, 2, 3, 4, 8, 16, 64), (None, 1, 7, 16), (None, 61_440, 307_200))
    different = [
        Request(
            gpus=gpus,
            cpus_per_gpu=cores,
            memory_mib=memory,
            time_s=hours * 3600.0,
        )
        for hours in (1, 30)
        for gpus, cores, memory in sizes
    ]
    clusters = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
    began_s = time.perf_counter()
    for request in itertools.islice(itertools.cycle(different), count):
        answer(request, clusters.values())
    return time.perf_counter() - began_s
