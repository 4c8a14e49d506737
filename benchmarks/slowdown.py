"""Slowdown: a program's own time under `teho run`, against the same program alone.

In each round the program runs alone, under `teho run --quiet` with eight stub GPUs, and
alone again. It waits two seconds, so that Teho stands, does a fixed amount of work, and
measures wall and CPU time of that work itself: *compute* is Python and NumPy on every core,
*storage* writes, syncs and reads many small files. Teho's figure is the median over the
rounds of how much longer it took than the mean of the two alone, in per cent, with its 95 %
interval (bootstrap). *Itself* compares the two runs alone in the same way: the truth is 0,
so its interval is what this machine can tell. Where that is wider than the budget or misses
0, or the budget lies within Teho's interval, neither yes nor no is said. What Teho costs
once, at the start and the end, stands under *Start* and *Recorder*.
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
_ROUNDS = 20
_BOOTSTRAPS = 2000
_BUDGET_PERCENT = 0.5


def measure(*, quick: bool) -> list[Row]:
    rows = []
    for program, size in _SIZES.items():
        own = [sys.executable, __file__, program, *(("0.02", "0.2") if quick else (size, "2"))]
        say(f"{program}, alone and under Teho in turn")
        with stub_environment() as env:
            alone = partial(measure_process, own, env)
            under = partial(measure_process, [*_TEHO, *own], env)
            calls = {"alone": alone, "under": under, "again": alone}
            ended = interleave(calls, 1 if quick else _ROUNDS)
        for position, clock in enumerate(("wall", "CPU")):
            seconds = {
                name: [float(one.output.split()[position]) for one in several]
                for name, several in ended.items()
            }
            rows.append(_row(f"{program}, {clock} time", seconds, judged=clock == "wall"))
    return rows


def _row(what: str, seconds: dict[str, list[float]], *, judged: bool) -> Row:
    rounds = list(zip(seconds["alone"], seconds["under"], seconds["again"], strict=True))
    ours = [100 * (under / ((alone + again) / 2) - 1) for alone, under, again in rounds]
    itself = [100 * (again / alone - 1) for alone, _, again in rounds]
    (low, high), (own_low, own_high) = _interval(ours), _interval(itself)
    clear = own_low <= 0 <= own_high and max(-own_low, own_high) < _BUDGET_PERCENT
    clear = clear and not low <= _BUDGET_PERCENT < high
    return Row(
        what=f"{what}, more than alone",
        unit="%",
        ours=Figures(tuple(ours)),
        ours_text=f"{statistics.median(ours):+.2f} (95 %: {low:+.2f} to {high:+.2f}; "
        f"{len(ours)} rounds of {digits(statistics.median(seconds['alone']))} s)",
        peer="itself",
        theirs=Figures(tuple(itself)),
        theirs_text=f"{statistics.median(itself):+.2f} (95 %: {own_low:+.2f} to {own_high:+.2f})",
        budget=_BUDGET_PERCENT if judged else None,
        verdict="" if clear or not judged else "too noisy to tell",
    )


def _interval(values: list[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the median."""
    chance = random.Random(1)
    medians = sorted(
        statistics.median(chance.choices(values, k=len(values))) for _ in range(_BOOTSTRAPS)
    )
    return medians[round(0.025 * _BOOTSTRAPS)], medians[round(0.975 * _BOOTSTRAPS) - 1]


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
