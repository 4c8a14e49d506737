"""Measure `teho profile --steps`: the very steps in 20 loops, slowdown, and the size of a trace.

    python benchmarks/profile_steps.py PYTHON [LOOP ... | slowdown]

PYTHON has PyTorch; with Lightning and Transformers, all loops run. Without LOOP: all of them, then
the slowdown. The loops are in `benchmarks/profile_loops.py`. Each loop marks its own steps, and the
benchmark looks for these marks in the trace.

*Outside of the window*: one process trains a model. The probe has a plan whose window is far away,
or it has none, in turns from step to step. The figure is the median difference of neighbours, in %
of a step. *After the window*: 40 steps after each of six windows of 5 steps, compared with the
steps before the first window. A profiler that stays attached is in this figure. *The same without a
window* are blocks of steps in the same order, before the first window.

*In the window*: the median time of the steps in the window, divided by the median of the 40 steps
before. All these times are CPU times of the process, because others use the machine too; each is
divided by the CPU time of a fixed loop beside it, because the speed of a core changes. With a GPU,
they are times until the GPU has finished the step. The time to stop the profiler and to write the
trace is in a line of its own: the program waits for it once.

*The trace* is the file in the recording. The model "many kernels" has 48 layers, as many as large
language models have: the number of operators decides the size of a trace.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent / "src"
LOOPS = HERE / "profile_loops.py"
STEPS, FIRST, END = 30, 20, 25
_MANY = 20_000
_WINDOWS = 6
_TURNS = 480
"""Number of steps of each kind that take turns before the window."""
_LOOP = 100_000
"""Length of the loop that measures how fast the core is at the moment: about 2 ms."""
MODELS = ("convolutions", "transformer", "small")
MANY_KERNELS = "many kernels"
_MARKS = {"accumulation": 4, "told_optimizer": 3, "lightning_accumulation": 2, "trainer": 2}
"""Number of marks that a loop makes in each step; the other loops make one."""
_VARIES = "lbfgs"
"""The loop whose number of marks in a step depends on the data."""


def teho(home: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "teho", *map(str, words)],
        env={**os.environ, "TEHO_HOME": home, "PYTHONPATH": str(SOURCES)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def very_steps(python: str, name: str) -> str:
    """Return what is wrong with the trace of a loop; empty if it has the very steps."""
    with tempfile.TemporaryDirectory() as home:
        done = teho(home, "profile", "--steps", f"{FIRST}:{END}", "--",
                    python, LOOPS, name, str(STEPS))  # fmt: skip
        paths = list(Path(home).glob("runs/*/traces/*.json.gz"))
        if done.returncode:
            return f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-2:]}"
        if len(paths) != 1:
            return f"{len(paths)} traces: {done.stderr.strip().splitlines()[-2:]}"
        names = re.findall(r'"name": "(loop step \d+|ProfilerStep#\d+)"',
                           gzip.decompress(paths[0].read_bytes()).decode())  # fmt: skip
    # A step that is in the trace twice, or in two halves, is wrong too.
    own = sorted(int(one.split()[-1]) for one in names if one.startswith("loop"))
    marked = sorted(int(one.split("#")[-1]) for one in names if one.startswith("Prof"))
    if name == _VARIES:
        own = sorted(set(own))
    steps = list(range(FIRST, END))
    wanted = sorted(steps * _MARKS.get(name, 1))
    return "" if (own, marked) == (wanted, steps) else f"loop {own}, marked {marked}"


def words_without_steps(python: str) -> str:
    """Return what `teho profile` says about a loop without an optimizer and `teho.step()`."""
    with tempfile.TemporaryDirectory() as home:
        done = teho(home, "profile", "--steps", f"{FIRST}:{END}", "--",
                    python, LOOPS, "untold", str(STEPS))  # fmt: skip
    return " ".join(done.stderr.split())


def recorded_mb(python: str, model: str) -> float:
    """Return the size of the trace of 5 steps of a model, as `teho profile` stores it, in MB."""
    with tempfile.TemporaryDirectory() as home:
        done = teho(home, "profile", "--steps", f"{FIRST}:{END}", "--",
                    python, __file__, "train", model)  # fmt: skip
        paths = list(Path(home).glob("runs/*/traces/*.json.gz"))
        if done.returncode or len(paths) != 1:
            raise RuntimeError(f"{model}: {len(paths)} traces: {done.stderr}")
        return paths[0].stat().st_size / 1e6


def slowdown(python: str, model: str) -> dict[str, float]:
    """Run the program with the probe, and without a recorder, which would take the traces away."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, __file__, "measure", model],
            env={**os.environ, "TEHO_PROBE": str(Path(folder, "spool")),
                 "PYTHONPATH": str(SOURCES / "teho" / "probe" / "inject")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(python: str, names: list[str]) -> None:
    listing = f"import sys; sys.path.insert(0, {str(HERE)!r}); "
    listing += "import profile_loops; print(*profile_loops.NAMES)"
    listed = subprocess.run([python, "-c", listing], capture_output=True, text=True, check=True)
    right = 0
    loops = [] if names == ["slowdown"] else names or listed.stdout.split()
    for name in loops:
        wrong = very_steps(python, name)
        right += not wrong
        print(f"{name:24} {wrong or 'the very steps'}", flush=True)
    print(f"{right} of {len(loops)} loops")
    for model in () if names != ["slowdown"] and names else MODELS:
        print(model)
        for what, value in slowdown(python, model).items():
            print(f"  {what:40} {value:10.3f}", flush=True)
        print(f"  {'trace of 5 steps, MB':40} {recorded_mb(python, model):10.3f}", flush=True)


# The program that is measured, run under `teho run` with the Python that has PyTorch.


def _model(name: str) -> tuple[Any, Any]:
    """Return a model and a batch for it."""
    from torch import cuda, nn, rand

    device = "cuda" if cuda.is_available() else "cpu"
    if name == "convolutions":
        width, batch_size, pixels = (64, 64, 56) if device == "cuda" else (16, 8, 24)
        layers = [
            nn.Sequential(nn.Conv2d(3 if n == 0 else width, width, 3, padding=1),
                          nn.BatchNorm2d(width), nn.ReLU())
            for n in range(6)
        ]  # fmt: skip
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.LazyLinear(10))
        batch = rand(batch_size, 3, pixels, pixels)
    elif name == "small":
        # The smallest operators: the profiler's own time counts most.
        model, batch = nn.Sequential(*(nn.Linear(16, 16) for _ in range(60))), rand(4, 16)
    elif name == MANY_KERNELS:
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
        encoder = nn.TransformerEncoder(layer, 48, enable_nested_tensor=False)
        model, batch = nn.Sequential(encoder, nn.Linear(64, 10)), rand(1, 16, 64)
    else:
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, dropout=0.0)
        encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
        model, batch = nn.Sequential(encoder, nn.Linear(128, 10)), rand(4, 32, 128)
    model, batch = model.to(device), batch.to(device)
    model(batch)
    return model, batch


def train(name: str) -> None:
    """Make some steps, for the size of a trace."""
    import torch

    torch.set_num_threads(1)
    model, batch = _model(name)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(STEPS):
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


class _Training:
    """A model in training, whose steps are timed."""

    def __init__(self, name: str) -> None:
        import torch

        torch.set_num_threads(1)
        self._cuda = torch.cuda if torch.cuda.is_available() else None
        self._model, self._batch = _model(name)
        self._optimizer = torch.optim.AdamW(self._model.parameters())
        self.times_s: list[float] = []
        """Of all steps."""

    def _now_s(self) -> float:
        if not self._cuda:
            return time.process_time()
        self._cuda.synchronize()
        return time.perf_counter()

    def step(self) -> float:
        """Return the time of a step: without a GPU, in units of a fixed loop beside it.

        The speed of a core of a virtual machine changes from second to second, and changes both.
        """
        began_s = self._now_s()
        if not self._cuda:
            sum(range(_LOOP))
        middle_s = self._now_s()
        self._model(self._batch).square().mean().backward()
        self._optimizer.step()
        self._optimizer.zero_grad()
        took_s = self._now_s() - middle_s
        self.times_s.append(took_s)
        return took_s if self._cuda else took_s / (middle_s - began_s)

    def usual(self, count: int = 40) -> float:
        """Return the median of some steps."""
        return statistics.median(self.step() for _ in range(count))


def measure(name: str) -> None:
    training = _Training(name)
    notes = sys.modules["_teho_probe"].NOTES
    training.usual(60)
    answer = _outside(training, notes)
    # The same blocks as around the windows, but without one: what the order alone changes.
    control: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(_WINDOWS):
        control["before"].append(training.usual())
        training.usual(20)
        control["after"].append(training.usual())
    base = statistics.median([*control["before"], *control["after"]])
    change = statistics.median(control["after"]) / statistics.median(control["before"]) - 1
    answer |= {"the same without a window, %": 100 * change, **_windows(training, notes, base)}
    print(json.dumps(answer))


def _plan(notes: Any, name: str, **changes: object) -> Any:
    """Return what the probe makes of a plan of the profiler."""
    from _teho_probe.profiling import Profiling

    plan: dict[str, object] = {
        "first": None, "last": None, "count": None, "window_s": None, "after_s": 0, "with": [],
        "ranks": "one", "most_s": 60, "most_bytes": 1 << 29,
    }  # fmt: skip
    text = json.dumps({**plan, "id": name, **changes})
    return Profiling(os.environ["TEHO_PROBE"], notes, text)


def _outside(training: _Training, notes: Any) -> dict[str, float]:
    """Measure steps that wait for their window, and steps without a plan, in turns."""
    plans = notes.plans
    waiting = _plan(notes, "far", first=10**9, last=10**9)
    kinds = ["waiting", "none", "again"]
    found: dict[str, list[float]] = {kind: [] for kind in kinds}
    drawn = random.Random(1)
    training.times_s.clear()
    for _ in range(_TURNS):
        for kind in drawn.sample(kinds, len(kinds)):
            plans._profiling = waiting if kind == "waiting" else None
            found[kind].append(training.step())
    per_step_s = {}
    for kind in ("waiting", "none"):
        plans._profiling = waiting if kind == "waiting" else None
        per_step_s[kind] = min(_steps_only_s(notes) for _ in range(9))
    plans._profiling = None

    def slower_percent(kind: str) -> float:
        pairs = zip(found[kind], found["none"], strict=True)
        return 100 * (statistics.median(one / other for one, other in pairs) - 1)

    return {
        "a step, ms": 1e3 * statistics.median(training.times_s),
        "the probe's work for a step, µs": 1e6 * per_step_s["none"],
        "the same with a plan, µs": 1e6 * per_step_s["waiting"],
        "outside of the window, %": slower_percent("waiting"),
        "the same without a plan, again, %": slower_percent("again"),
    }


def _windows(training: _Training, notes: Any, base: float) -> dict[str, float]:
    """Measure the steps in some windows, and after each of them.

    Args:
        training: the training.
        notes: of the probe.
        base: the usual time of a step before the first window.
    """
    found: dict[str, list[float]] = {"in": [], "after": [], "wait": []}
    for number in range(_WINDOWS):
        before = training.usual()
        notes.plans._profiling = _plan(notes, f"w{number}", count=5)
        taken = [training.step() for _ in range(20)]
        # The plan begins with the first step: two steps later, the profiler records.
        found["in"].append(statistics.median(taken[2:7]) / before)
        use = next(one for one in notes._profiled if one["profile"] == f"w{number}")
        found["wait"].append(use["stop_s"] + use["save_s"])
        found["after"].append(training.usual() / base)
    return {
        "after the window, %": 100 * (statistics.median(found["after"]) - 1),
        "after the fastest window, %": 100 * (min(found["after"]) - 1),
        "after the slowest window, %": 100 * (max(found["after"]) - 1),
        "a step in the window, times": statistics.median(found["in"]),
        "stop and write, ms": 1e3 * statistics.median(found["wait"]),
    }


def _steps_only_s(notes: Any) -> float:
    """Return the time of one step in which the program does nothing."""
    began_s = time.process_time()
    for _ in range(_MANY):
        notes.step()
    return (time.process_time() - began_s) / _MANY


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        measure(sys.argv[2])
    elif sys.argv[1] == "train":
        train(sys.argv[2])
    else:
        main(sys.argv[1], sys.argv[2:])
