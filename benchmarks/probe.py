"""This section shows how much the probe, the stack sampler and other profilers slow programs down.

Three small programs run with the probe and the stack sampler, as under `teho run`. The *stack
sampler* is the process of Teho that reads the stacks of Python programs from outside. The program
*training* trains a small neural network (CNN). A DataLoader without workers prepares the images.
The program *python* counts in plain Python. The program *numpy* multiplies matrices. Each program
computes in only one thread, as programs that torchrun starts usually do.

In normal use, the sampler slows down the program by less than the random differences between
measurements on a shared machine. On average, the sampler may then use 0.4 % of a core in the first
150 s of a process. In this benchmark, the sampler may use ten times as much, which is 4 % of a
core. The measured loss of speed is divided by ten.

The run is divided into time windows of half a second. In windows 1, 3, 5 and so on, the program
stops the sampler (SIGSTOP). These windows are called *stopped*. Windows 2, 4, 6 and so on are of
two kinds, in random order. In an *awake* window, the sampler runs. In a *stopped again* window, the
sampler stays stopped. Half of the windows 2, 4, 6 and so on are *awake* windows, and the other half
are *stopped again* windows. Teho's figure shows how much longer a step took in an *awake* window
than in the *stopped* windows before and after it. Each *awake* window gives one value in per cent.
The benchmark leaves out the highest quarter and the lowest quarter of these values. Teho's figure
is the mean of the remaining values, divided by ten. The table also shows the 95 % confidence
interval of Teho's figure (computed with the bootstrap method). The figure *stopped again* is
computed in the same way from the *stopped again* windows. The true value of the figure *stopped
again* is 0, because the sampler is stopped in all windows that this figure compares.

If the measurement is not exact enough, the column *Budget kept* says *too noisy to tell*. There are
two such situations. In the first situation, the confidence interval of *stopped again* reaches the
budget (0.5 %) or its negative value (-0.5 %). In the second situation, the budget is inside the
confidence interval of Teho's figure.

The probe also wraps functions of PyTorch: each call of such a function also runs code of the probe.
The benchmark cannot switch off the wrapped functions during a run. So the benchmark measures the
cost of the wrapped functions separately, and adds this cost to Teho's figure for *training*. For
this measurement, some processes run with the probe, and some run without the probe. Each process
runs a data loader that returns numbers, and an optimizer with one parameter. The benchmark takes
the shortest time per batch with the probe, and subtracts the shortest time per batch without the
probe. This difference is the time that the wrapped functions need per batch. The benchmark
multiplies this time by the number of batches per second in *training*. The product is the share of
the run time that the wrapped functions take.

The probe and the sampler measure their own CPU time from the start of a run. The rows *CPU time of
probe and sampler* show the CPU time of the probe plus the CPU time of the sampler. Only the last
two rows of the table include the time that the probe needs when a program starts and ends.

Other profilers cannot be stopped and continued during a run. So the benchmark compares two kinds of
whole runs: runs with a profiler, and runs without a profiler. In each round, the program runs once
with each profiler and once without a profiler. A profiler's figure shows how much longer a step
took with the profiler than without a profiler, after a warm-up of two seconds. The figure is the
median over all rounds, with the minimum and the maximum. The start and the end of the program are
not included. *A second run* is a second run of the program without a profiler. If a profiler's
figure is inside the range of *a second run*, the slowdown by this profiler cannot be distinguished
from random differences.

The row *the probe, as a whole process* measures the probe in the same way as the profilers. This
row is a check of the method with time windows. If the method with time windows missed a part of the
slowdown, this row would show the missed part.

torch.profiler records only the CPU. *torch.profiler, scheduled* means that torch.profiler repeats
`schedule(wait=5, warmup=1, active=3)` and writes its traces. With TraceML, each step is inside
TraceML's context manager `trace_step`. scalene runs with `--cpu-only`. py-spy takes 100 samples per
second, which is py-spy's default. py-spy, scalene and TraceML are installed into a separate Python
environment. If a profiler does not work on this machine, the table has no row for this profiler.
`tests/frameworks.sh` installs PyTorch. If PyTorch is missing, the table has no rows for the program
*training*.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from common import (
    CACHE,
    ROOT,
    Figures,
    Row,
    environment,
    interleave,
    measure_process,
    say,
    slower_by,
    wall_ms_of,
)

from teho.observe import stack_sampler
from teho.observe.spool import with_probe
from teho.observe.stack_sampling import StackSampling

_PROGRAMS = Path(__file__).with_name("probe_programs.py")
_FRAMEWORKS = ROOT / ".frameworks" / "bin" / "python"
_INSTALLED = ("py-spy==0.4.3", "scalene==2.4.0", "traceml-ai==0.5.0")
_BUDGET_PERCENT = 0.5
_DOSE, _USUAL_SHARE = 10, 0.004
"""Factor, and share of a core that the sampler uses on average in the first 150 s of a process."""
_WINDOWS, _WINDOW_S = 300, 0.5
"""Number of *awake* and *stopped again* windows; there is one more *stopped* window."""
_ROUNDS, _PEER_S = 5, 5.0
_WHOLE = "the probe, as a whole process"


def measure(*, quick: bool) -> list[Row]:
    python = _FRAMEWORKS if _FRAMEWORKS.exists() else Path(sys.executable)
    has_torch = python == _FRAMEWORKS
    peers = None if quick else peers_for(python)
    if peers is not None:
        python = peers / "python"
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as name:
        folder = Path(name)
        one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        alone = environment(folder) | one_thread
        probe = with_probe(alone, str(folder / "spool"))
        rows = []
        programs = ("numpy",) if quick else ("python", "numpy")
        for program in ("training", *programs) if has_torch else programs:
            child = _Child(python, program, folder, alone, probe)
            rows += _rows(child, {} if quick else child.peers(peers), quick=quick)
        for program in ("pass", "import torch") if has_torch and not quick else ("pass",):
            rows.append(_start(python, program, alone, probe, rounds=1 if quick else 31))
    return rows


def _rows(
    child: _Child, peers: Mapping[str, Callable[[float], dict[str, Any]]], *, quick: bool
) -> list[Row]:
    """Return the rows of one program."""
    rounds, windows, window_s, seconds = (
        (1, 4, 0.2, 0.5) if quick else (_ROUNDS, _WINDOWS, _WINDOW_S, _PEER_S)
    )
    say(f"{child.program}, {2 * windows + 1} windows of {window_s:g} s")
    windowed = child.told("windows", windows, window_s, probed=True)
    say(f"{child.program}, {rounds} rounds beside others")
    is_training = child.program == "training"
    # PyTorch takes seconds to start: the quick form measures both in the same processes.
    more = ("hooks",) if quick and is_training else ()
    calls = {
        "alone": partial(child.told, seconds, "none", *more),
        _WHOLE: partial(child.told, seconds, "none", *more, probed=True),
        **{name: partial(call, seconds) for name, call in peers.items()},
    }
    if not quick:
        calls["a second run"] = partial(child.told, seconds, "none")
    told = interleave(calls, rounds)
    rates = {name: [one["steps_per_s"] for one in several] for name, several in told.items()}
    hooks = []
    if is_training:
        steps = (told["alone"], told[_WHOLE]) if quick else child.hooks(rounds)
        hooks.append(_hooks(child.program, statistics.median(rates["alone"]), *steps))
    awake = [one + sum(row.ours.median for row in hooks) for one in windowed["awake"]]
    ours = slower_by(child.program, awake, windowed["again"], _BUDGET_PERCENT)
    accounts = [child.account(one["pid"]) for one in told[_WHOLE]]
    length_s = statistics.median(length_s for _, length_s in accounts)
    return [
        ours,
        *(
            _beside(ours, name, rates["alone"], theirs)
            for name, theirs in rates.items()
            if name != "alone"
        ),
        *hooks,
        Row(
            what=f"program *{child.program}*: CPU time of probe and sampler in the first "
            f"{length_s:.1f} s",
            unit="ms",
            ours=Figures.of(*(1000 * cost_s for cost_s, _ in accounts)),
        ),
    ]


class _Child:
    """One of the programs, which can be run in many ways.

    Args:
        python: the Python that runs the program.
        program: the name of the program.
        folder: the folder for the files of the program.
        alone: the environment of the program without the probe.
        probe: the environment of the program with the probe.
    """

    def __init__(
        self,
        python: Path,
        program: str,
        folder: Path,
        alone: Mapping[str, str],
        probe: Mapping[str, str],
    ) -> None:
        self.program = program
        self._script = (python, _PROGRAMS)
        self._folder = folder
        self._environments = {False: alone, True: probe}

    def told(
        self,
        *what: object,
        probed: bool = False,
        program: str = "",
        around: Sequence[object] = (),
    ) -> dict[str, Any]:
        """Run the program, and return the results that it writes."""
        result = self._folder / "result.json"
        result.unlink(missing_ok=True)
        argv = [*(around or self._script), program or self.program, result, *what]
        with (
            _sampled(self._environments[True]["TEHO_PROBE"], is_dosed="windows" in what)
            if (probed)
            else nullcontext()
        ):
            measure_process([str(word) for word in argv], self._environments[probed])
        told: dict[str, Any] = json.loads(result.read_bytes())
        return told

    def peers(self, commands: Path | None) -> dict[str, Callable[[float], dict[str, Any]]]:
        """Return functions that run the program with each peer that works on this machine."""
        trace, logs = self._folder / "trace", self._folder / "logs"
        inside: dict[str, str] = {}
        around: dict[str, list[object]] = {}
        if self.program == "training":
            inside = {name: name for name in ("torch.profiler", "torch.profiler, scheduled")}
        if commands is not None:
            around["py-spy"] = [commands / "py-spy", "record", "-o", trace, "--", *self._script]
            scalene = [commands / "scalene", "run", "--cpu-only", "-o", trace, _PROGRAMS, "---"]
            around["scalene"] = scalene
            if self.program == "training":
                inside["TraceML"] = "traceml"
                around["TraceML"] = [
                    commands / "traceml", "run", "--logs-dir", logs,
                    "--aggregator-port", _free_port(), _PROGRAMS, "--args",
                ]  # fmt: skip
        calls: dict[str, Callable[[float], dict[str, Any]]] = {}
        for name in around | inside:

            def call(seconds: float, name: str = name) -> dict[str, Any]:
                return self.told(seconds, inside.get(name, "none"), around=around.get(name, ()))

            try:
                call(0.5)
            except (RuntimeError, OSError) as error:
                say(f"{name} does not work here: {error}")
            else:
                calls[name] = call
        return calls

    def hooks(self, rounds: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return the times of steps that do nothing, without the probe and with it."""
        told = interleave(
            {
                probed: partial(self.told, program="hooks", probed=probed)
                for probed in (False, True)
            },
            rounds,
        )
        return told[False], told[True]

    def account(self, pid: int) -> tuple[float, float]:
        """Return the CPU time of probe and sampler by their own count, and the run's length [s]."""
        spool = Path(self._environments[True]["TEHO_PROBE"])
        (own,) = spool.glob(f"{pid}-*.jsonl")
        lines = [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
        probe_s = [line["cost_s"] for line in lines if "cost_s" in line][-1]
        # Each run has its own sampler. This finds the sampler that read this process.
        began = f'"{own.stem}","began_s"'
        (path,) = (one for one in spool.glob("stacks-*.jsonl") if began in one.read_text())
        told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        sampler_s = [line["cost_s"] for line in told if "cost_s" in line][-1]
        return probe_s + sampler_s, lines[-1]["end_s"] - lines[0]["began_s"]


@contextmanager
def _sampled(spool: str, *, is_dosed: bool) -> Iterator[None]:
    """Run the recorder's sampler for the processes that write into a spool."""
    usual = stack_sampler._share
    if is_dosed:
        stack_sampler._share = lambda _: _DOSE * _USUAL_SHARE
    try:
        child = StackSampling(spool, cores=os.cpu_count() or 1)
        yield
        child.stop()
    finally:
        stack_sampler._share = usual


def _beside(ours: Row, name: str, alone: Sequence[float], theirs: Sequence[float]) -> Row:
    """Return the row that compares the steps per second with a peer and without a peer."""
    slower = [100 * (own / other - 1) for own, other in zip(alone, theirs, strict=True)]
    middle = statistics.median(slower)
    return Row(
        what=ours.what,
        unit="%",
        ours=ours.ours,
        peer=name,
        theirs=Figures.of(middle),
        theirs_text=f"{middle:+.1f} ({min(slower):+.1f} to {max(slower):+.1f})",
    )


def _hooks(
    program: str,
    steps_per_s: float,
    alone: Sequence[dict[str, Any]],
    probed: Sequence[dict[str, Any]],
) -> Row:
    """Return the row about the cost of the wrapped functions, at a step rate of *training*."""
    alone_s, probe_s = (min(one["step_s"] for one in told) for told in (alone, probed))
    percent = 100 * (probe_s - alone_s) * steps_per_s
    return Row(
        what=f"program *{program}*: slower by the wrapped functions of PyTorch",
        unit="%",
        ours=Figures.of(percent),
        ours_text=f"{percent:+.2f} ({1e6 * (probe_s - alone_s):.1f} µs per batch)",
    )


def _start(
    python: Path, program: str, alone: Mapping[str, str], probe: Mapping[str, str], *, rounds: int
) -> Row:
    """Return the row about the wall time of a very short program."""
    say(f"start of `{program}`")
    argv = (python, "-c", program)
    ended = interleave(
        {
            probed: partial(measure_process, argv, probe if probed else alone)
            for probed in (False, True)
        },
        rounds,
    )
    wall_ms = wall_ms_of(ended)
    return Row(
        what=f'`python -c "{program}"` with the probe, wall time',
        unit="ms",
        ours=wall_ms[True],
        peer="without the probe",
        theirs=wall_ms[False],
    )


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def peers_for(python: Path) -> Path | None:
    """Return the folder of the peers' commands. The peers can import the packages of `python`."""
    peers = CACHE / "peers"
    done, wanted = peers / "done", "\n".join((str(python), *_INSTALLED))
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return peers / "bin"
    say(f"installing {', '.join(_INSTALLED)} into {peers}")
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    where = ("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    try:
        run([python, "-m", "venv", "--clear", peers])
        theirs, base = (
            run([one, *where]).stdout.strip() for one in (peers / "bin" / "python", python)
        )
        Path(theirs, "base.pth").write_text(base, encoding="utf-8")
        run([peers / "bin" / "python", "-m", "pip", "install", "-q", *_INSTALLED])
    except subprocess.CalledProcessError as error:
        say(f"they could not be installed: {error.stderr.strip()[-500:]}")
        return None
    done.write_text(wanted, encoding="utf-8")
    return peers / "bin"
