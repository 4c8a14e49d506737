"""This section shows how much the recorder slows down a program under `teho run`.

In each measurement, one program runs for minutes under `teho run --quiet` with eight stub GPUs. The
program counts how often it repeats a small piece of work. The program *compute* runs Python and
NumPy on every core. The program *loader* also runs on every core. The program *loader* reads small
files from the page cache, unpacks these files and lists their directory.

At one sample per second, the recorder slows down the program by less than the random differences
between measurements on a shared machine. So in this benchmark, the recorder takes ten samples per
second, and the measured loss of speed is divided by ten.

The run is divided into time windows of one second. In windows 1, 3, 5 and so on, the program stops
the recorder (SIGSTOP). These windows are called *stopped*. Windows 2, 4, 6 and so on are of two
kinds, in random order. In an *awake* window, the recorder runs. In a *stopped again* window, the
recorder stays stopped. Half of the windows 2, 4, 6 and so on are *awake* windows, and the other
half are *stopped again* windows. All time windows are in the same process with the same memory. The
benchmark compares each *awake* or *stopped again* window with the *stopped* windows before and
after it. So slow changes of the machine do not change the result.

Teho's figure shows how much less work the program did in an *awake* window than in the *stopped*
windows before and after it. Each *awake* window gives one value in per cent. The benchmark leaves
out the highest quarter and the lowest quarter of these values. Teho's figure is the mean of the
remaining values, divided by ten. The table also shows the 95 % confidence interval of Teho's figure
(computed with the bootstrap method). The figure *stopped again* is computed in the same way from
the *stopped again* windows. The true value of the figure *stopped again* is 0, because the recorder
is stopped in all windows that this figure compares. So the confidence interval of *stopped again*
shows how exact the measurements on this machine are.

If the measurement is not exact enough, the column *Budget kept* says *too noisy to tell*. There are
two such situations. In the first situation, the confidence interval of *stopped again* reaches the
budget (0.5 %) or its negative value (-0.5 %). In the second situation, the budget is inside the
confidence interval of Teho's figure.

When the stopped recorder continues, the recorder takes one sample at once. So in the next second,
the recorder takes eleven samples instead of ten. Because of the eleventh sample, Teho's figure may
be too high, but not too low. The supervisor (the process of `teho run` that waits for the program)
sleeps during the whole measurement. This section does not include the costs at the start and at the
end of a run. These costs are in the sections *Start* and *Recorder*.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import SCRIPTS, Row, measure_process, say, slower_by, stub_environment

_PROGRAMS = ("compute", "loader")
_WINDOWS, _WINDOW_S = 300, 1.0
"""Number of *awake* and *stopped again* windows; there is one more *stopped* window."""
_DOSE = 10
"""Samples per second: ten times the usual number, and ten times the cost."""
_BUDGET_PERCENT = 0.5


def measure(*, quick: bool) -> list[Row]:
    windows, window_s = (4, 0.3) if quick else (_WINDOWS, _WINDOW_S)
    rows = []
    for program in _PROGRAMS:
        say(f"{program}, {2 * windows + 1} windows of {window_s:g} s")
        every = f"{1000 // _DOSE}ms"
        argv = [SCRIPTS / "teho", "run", "--quiet", "--every", every, "--"]
        argv += [sys.executable, __file__, program]
        with stub_environment() as env:
            ended = measure_process([*argv, str(windows), str(window_s)], env)
        lost = json.loads(ended.output.splitlines()[-1])
        rows.append(slower_by(program, lost["awake"], lost["again"], _BUDGET_PERCENT))
    return rows


# The programs, run as `slowdown.py NAME WINDOWS WINDOW_S` under `teho run`.


def _arithmetic(_: Path) -> Callable[[], None]:
    """Return some milliseconds of plain Python and of NumPy."""
    import numpy as np

    matrix = np.random.default_rng(1).random((150, 150))

    def work() -> None:
        sum(number * number % 7 for number in range(10_000))
        np.tanh(matrix @ matrix.T / 150)

    return work


def _reading(folder: Path) -> Callable[[], None]:
    """Return some milliseconds of a data loader's work on small files."""
    content = zlib.compress(b"".join(b"%d," % (n * n % 9973) for n in range(8000)))
    for number in range(50):
        (folder / f"{number}.bin").write_bytes(content)

    def work() -> None:
        for path in sorted(folder.iterdir()):
            zlib.decompress(path.read_bytes())

    return work


def _worker(name: str, folder: Path, windows: int, changed: Any, totals: Any) -> None:
    """Work without a pause, and count the units done in each window."""
    work = {"compute": _arithmetic, "loader": _reading}[name](folder)
    while (window := changed.value) < windows:
        work()
        # A unit of work counts for the window in which it ends: this is fair to all windows.
        totals[changed.value if changed.value < windows else window] += 1


def _main(name: str, count: int, window_s: float) -> None:
    # One thread for each process, and one process for each core.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    recorder = _recorder_pid()
    between = ["awake", "again"] * (count // 2)
    random.Random(1).shuffle(between)
    states = ["stopped", *itertools.chain(*((one, "stopped") for one in between))]
    window = multiprocessing.Value("i", -1, lock=False)
    cores = sorted(os.sched_getaffinity(0))
    totals = [multiprocessing.Array("i", len(states) + 1, lock=False) for _ in cores]
    folder = Path(tempfile.mkdtemp(dir=os.environ["TEHO_HOME"]))
    workers = [
        multiprocessing.Process(target=_worker, args=(name, folder, len(states), window, total))
        for total in totals
    ]
    for worker in workers:
        worker.start()
    time.sleep(window_s)
    lengths_s = []
    try:
        for number, state in enumerate(states):
            os.kill(recorder, signal.SIGCONT if state == "awake" else signal.SIGSTOP)
            window.value = number
            began_s = time.perf_counter()
            time.sleep(window_s)
            # To compute a rate, at least one unit of work is needed.
            while not sum(total[number] for total in totals) and workers[0].is_alive():
                time.sleep(window_s)
            lengths_s.append(time.perf_counter() - began_s)
    finally:
        window.value = len(states)
        os.kill(recorder, signal.SIGCONT)
        for worker in workers:
            worker.join()
    rates = [
        sum(total[number] for total in totals) / length_s
        for number, length_s in enumerate(lengths_s)
    ]
    lost: dict[str, list[float]] = {"awake": [], "again": []}
    for place in range(1, len(states), 2):
        around = (rates[place - 1] + rates[place + 1]) / 2
        lost[states[place]].append(100 * (around / rates[place] - 1) / _DOSE)
    print(json.dumps(lost))


def _recorder_pid() -> int:
    while True:
        for path in Path(os.environ["TEHO_HOME"]).glob("runs/*/nodes/*.json"):
            return int(json.loads(path.read_bytes())["recorder_pid"])
        time.sleep(0.05)


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
