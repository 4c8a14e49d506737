"""Slowdown: a program's own time under `teho run`, against the same program alone.

Each pair is the program alone and under `teho run --quiet` with eight stub GPUs, in turn
first and second. The program waits two seconds, so that Teho stands, does a fixed amount
of work, and measures wall and CPU time of that work itself: *compute* is Python and NumPy on
every core, *storage* writes, syncs and reads many small files. Given is the median of the
pairs' differences in per cent, with its 95 % interval (bootstrap); where the budget lies
within the interval, the machine is too noisy to tell. What Teho costs once, at the start
and the end, stands under *Start* and *Recorder*.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from common import SCRIPTS, Figures, Row, digits, interleave, measure_process, say, stub_environment

_TEHO = [str(SCRIPTS / "teho"), "run", "--quiet", "--"]
_SIZES = {"compute": "2.5", "storage": "6"}
"""Some four seconds each."""
_PAIRS = 30
_BOOTSTRAPS = 2000
_BUDGET_PERCENT = 0.5


def measure(*, quick: bool) -> list[Row]:
    rows = []
    for program, size in _SIZES.items():
        own = [sys.executable, __file__, program, *(("0.02", "0.2") if quick else (size, "2"))]
        say(f"{program}, alone and under Teho in turn")
        with stub_environment() as env:
            calls = {
                "alone": partial(measure_process, own, env),
                "teho": partial(measure_process, [*_TEHO, *own], env),
            }
            ended = interleave(calls, 1 if quick else _PAIRS)
        for position, clock in enumerate(("wall", "CPU")):
            alone, under = (
                [float(one.output.split()[position]) for one in ended[name]] for name in calls
            )
            rows.append(_row(f"{program}, {clock} time", alone, under, judged=clock == "wall"))
    return rows


def _row(what: str, alone: list[float], under: list[float], *, judged: bool) -> Row:
    percents = [100 * (mine / other - 1) for mine, other in zip(under, alone, strict=True)]
    chance = random.Random(1)
    medians = sorted(
        statistics.median(chance.choices(percents, k=len(percents))) for _ in range(_BOOTSTRAPS)
    )
    low, high = medians[round(0.025 * _BOOTSTRAPS)], medians[round(0.975 * _BOOTSTRAPS) - 1]
    told_apart = "too noisy to tell" if low <= _BUDGET_PERCENT < high else ""
    return Row(
        what=f"{what}, more than alone",
        unit="%",
        ours=Figures(tuple(percents)),
        ours_text=f"{statistics.median(percents):+.2f} (95 %: {low:+.2f} to {high:+.2f}; "
        f"{len(percents)} pairs of {digits(statistics.median(alone))} s)",
        budget=_BUDGET_PERCENT if judged else None,
        verdict=told_apart if judged else "",
    )


# The programs, run as `slowdown.py NAME SIZE WAIT_S`.


def _compute(size: float) -> None:
    """Keep every core busy with plain Python and with NumPy."""
    workers = [
        multiprocessing.Process(target=_arithmetic, args=(size,)) for _ in os.sched_getaffinity(0)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _arithmetic(size: float) -> None:
    import numpy as np

    matrix = np.random.default_rng(1).random((300, 300))
    for _ in range(math.ceil(40 * size)):
        sum(number * number % 7 for number in range(300_000))
        for _ in range(10):
            matrix = np.tanh(matrix @ matrix.T / 300)


def _storage(size: float) -> None:
    """Write, sync and read many small files, and a directory's listing now and then."""
    content = os.urandom(16_384)
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        for number in range(math.ceil(1500 * size)):
            path = folder / f"{number % 200}.bin"
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            path.read_bytes()
            if number % 50 == 0:
                sorted(folder.iterdir())


def _main(name: str, size: float, wait_s: float) -> None:
    # One thread a process: the processes fill the cores.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    time.sleep(wait_s)
    began_s = time.perf_counter()
    {"compute": _compute, "storage": _storage}[name](size)
    wall_s = time.perf_counter() - began_s
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(wall_s, sum(usage.ru_utime + usage.ru_stime for usage in usages))


if __name__ == "__main__":
    _main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
