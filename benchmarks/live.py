"""This section shows the cost of `teho top` with 64 and 1,250 nodes, and of a watched recorder.

One process behaves like the recorders of 64 nodes with 8 GPUs each. When `teho top` starts, each
node has already recorded rows for one minute. Then the process behaves like the recorders of 1,250
nodes. Each of these recorders sends a sample every 3.1 s, and has already recorded rows for 3 s.
Six of the 1,250 nodes are dead: they send nothing. Six other nodes are slow: they send a sample
every 8 s. At last, the process behaves like the recorders of 20 nodes behind a firewall that
refuses connections, so each recorder replaces a file every second. `teho top` runs in a terminal of
120 columns and 40 lines. nvitop shows one node with eight GPUs in a terminal of the same size.

The benchmark starts `teho top` and nvitop several times, to measure the time until the first
values. *Verdict and values* is the time until `teho top` has written a verdict about the run and
the values of a node. In a job with more than 8 nodes, `teho top` shows the values first, and the
verdict when its report is made. CPU time, memory, bytes and ages are measured in several periods of
the same process, one after the other. CPU time and memory include child processes: `teho top` makes
its first report in a child process. *Bytes to the terminal* is the number of bytes that the program
writes to the terminal. *PSS* (proportional set size) counts memory that several processes share
only in part, *RSS* (resident set size) counts it whole.

To measure the age of a value on the screen, the process writes the time of each sample into the
sample, as the host memory. The age is the time of the screenshot minus this time. The screen has
only room for some of the nodes. In the rows about ages, the dead and the slow nodes are left out.

We also tried two tools that are made for jobs. slurmwatch 1.2.4 shows one node of a Slurm job at a
time. It reads the cgroups of the job, but the nodes of the Slurm of this benchmark have no cgroups.
So slurmwatch does not open its screen: it prints a summary from `sstat` and ends. all-smi, a
program in Rust, is neither a package of Python nor of Debian, and this machine can install no other
packages. So these two tools are not in the table.

Two recorders are measured at the same time, in periods without and with a viewer: one records
`sleep`, the other one a Python program with the probe. While `teho top` watches a Python program,
its stack sampler also sends the present line of each process. The stack sampler is a child process
of the recorder. It reads the memory of the program from outside, and never stops the program. While
`teho top` watches, it takes no more samples of the program than before, and the probe in the
program does nothing more. So the program becomes slower by at most the additional CPU time of the
recorder and the sampler, even if they share a core with the program.

The finished run of 64 nodes takes one hour. The Slurm job runs on a real Slurm, whose daemons all
run on this machine. Its first value is the first amount of memory of a node on the screen.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import live_frames
from big_report import generated
from common import SCRIPTS, Figures, Row, installed, say, stub_environment
from live_recorders import name_of
from process_tree import members, tree_bytes, tree_cpu_s
from recorder import cpu_s, memory_bytes, recorder_pid, running
from terminals import COLUMNS, LINES, in_terminal, plain

from teho.model.live import Way
from teho.show.top.rows import WAYS

_HERE = Path(__file__).parent
_GPUS = 8
_VALUE = re.compile(r"127\.0\.\d+\.\d+ +\d( \d)+ ")
_VERDICT = re.compile(r"(?<!\w)[✗!i✓?] (?!Teho is making)[A-Z\d]")
_NVITOP_VALUE = re.compile(r"\d+W / \d+W")
_NODE = re.compile(r"^[▶ ] (127\.0\.\S+) ")
_MEMORY = re.compile(r" ([\d,.]+) (MiB|GiB|TiB)\s+[\d.]+ %")
_SILENT = re.compile(r"has sent (?:nothing for|no sample)")
_SHOWN_AGE = re.compile(r" (\d+) s\s*$")
_TO_S = {"MiB": 1 / 1024, "GiB": 1.0, "TiB": 1024.0}
_MB = 1e6
_LONGEST_START_S = 20.0
_LARGEST_ERROR_S = 2.0
"""Of an age on the screen, which counts from the arrival of the sample."""


class _Job(NamedTuple):
    nodes: int
    recorded_s: int
    """Seconds of rows."""
    bad: int
    """Number of dead nodes, and of slow nodes."""
    age_s: float
    """Budget for the age of a value on the screen."""
    is_small: bool
    """Whether the other budgets of the screen hold for it."""
    way: Way = "connection"
    """How the samples come."""


_JOBS = (
    _Job(64, 60, 0, 2, is_small=True),
    _Job(1250, 3, 6, 5, is_small=False),
    _Job(20, 60, 0, 2, is_small=True, way="file"),
)
_QUICK = (_Job(2, 3, 0, 2, is_small=True), _Job(2, 3, 0, 2, is_small=True, way="file"))


class _Times(NamedTuple):
    """How long is measured."""

    warm_s: float
    period_s: float
    periods: int
    starts: int
    recorder_periods: int


class Terminal:
    """A program in a terminal; counts the bytes that it writes.

    Args:
        argv: the program.
        env: its environment.
        wanted: name -> pattern; the time of the first frame that has it is measured.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        wanted: Mapping[str, re.Pattern[str]] | None = None,
    ) -> None:
        self.written = 0
        self.seen_s: dict[str, float] = {}
        """Time from the start until a pattern was written."""
        began_s = time.monotonic()
        self.pid, self._descriptor = in_terminal(argv, env)
        left = dict(wanted or {})

        def read() -> None:
            written = b""
            with contextlib.suppress(OSError):
                while data := os.read(self._descriptor, 1 << 16):
                    self.written += len(data)
                    if not left:
                        continue
                    written += data
                    text = plain(written)
                    for name in [name for name, one in left.items() if one.search(text)]:
                        self.seen_s[name] = time.monotonic() - began_s
                        del left[name]

        threading.Thread(target=read, daemon=True).start()

    def end(self) -> None:
        """End the program."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


class _Screens(NamedTuple):
    """What the screens of `teho top` showed."""

    ages: list[list[float]]
    """Ages [s] of the values of healthy nodes, in each period."""
    named: set[str]
    """Nodes that were named as silent on the last screen."""
    errors: list[float]
    """Differences [s] between the age of a slow node on the screen and its true age."""


def measure(*, quick: bool) -> list[Row]:
    # The recorders of many nodes find the lease within 20 s.
    times = _Times(1.0, 0.5, 2, 1, 2) if quick else _Times(25.0, 40.0, 3, 5, 5)
    rows: list[Row] = []
    for job in _QUICK if quick else _JOBS:
        say(f"{job.nodes} nodes with {_GPUS} GPUs each, values {WAYS[job.way]}")
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "TEHO_HOME": folder}
            with _recorders(Path(folder), job) as began_s:
                if job.way == "connection":
                    rows += _viewer(env, job, times)
                if job.way == "connection" and job.is_small:
                    rows += live_frames.of_views(env, job.nodes, min(times.warm_s, 3.0))
                if shutil.which("tmux"):
                    rows += _screen_rows(job, _screens(env, job, began_s, times))
    if not quick:
        home = generated(64, 1 / 24, os.environ)
        env = {**os.environ, "TEHO_HOME": str(home)}
        rows += live_frames.of_recording(home, env, 64)
        rows += live_frames.of_scheduler()
    return [*rows, *_watched_recorders(times)]


@contextlib.contextmanager
def _recorders(home: Path, job: _Job) -> Iterator[float]:
    """Play the recorders of many nodes; yield the monotonic time of their start."""
    run = home / "runs" / "20261126-080000-live-aaaa"
    counts = (job.nodes, _GPUS, 86400, job.recorded_s, job.bad)
    argv = [sys.executable, str(_HERE / "live_recorders.py"), str(run), *map(str, counts), job.way]
    with running(argv, os.environ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield float((run / "began").read_text())


# The program in its terminal


def _viewer(env: Mapping[str, str], job: _Job, times: _Times) -> list[Row]:
    wanted = {"values": _VALUE, "verdict": _VERDICT}
    ours = _in_terminal([str(SCRIPTS / "teho"), "top"], env, wanted, times, waits=job.is_small)
    theirs: dict[str, Figures] = {}
    if installed("nvitop") and job.is_small:
        say("nvitop")
        with stub_environment() as stub:
            values = {"values": _NVITOP_VALUE}
            theirs = _in_terminal([str(SCRIPTS / "nvitop")], stub, values, times, waits=True)
    rows = []
    for key, what, unit, budget in (
        ("values", "time until the first frame with values", "s", 1),
        ("verdict", "time until the first frame with verdict and values", "s", 1),
        ("percent", "CPU time of the viewer, share of one core", "%", 5),
        ("pss", "memory of the viewer (PSS)", "MB", 120),
        ("rss", "memory of the viewer (RSS)", "MB", None),
        ("traffic", "bytes to the terminal per second", "kB/s", 20),
    ):
        if key in ours:
            is_for_all = key == "traffic"
            rows.append(
                Row(
                    what=f"`teho top`, {job.nodes} nodes: {what}",
                    unit=unit,
                    ours=ours[key],
                    peer="nvitop, one node" if key in theirs else "",
                    theirs=theirs.get(key),
                    budget=budget if job.is_small or is_for_all else None,
                )
            )
    return rows


def _in_terminal(
    argv: Sequence[str],
    env: Mapping[str, str],
    wanted: Mapping[str, re.Pattern[str]],
    times: _Times,
    *,
    waits: bool,
) -> dict[str, Figures]:
    """Measure a program; with `waits`, each start is waited for until all patterns are seen."""
    seen: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(times.starts):
        terminal = Terminal(argv, env, wanted)
        end_s = time.monotonic() + _LONGEST_START_S
        while not _is_enough(terminal, wanted, waits=waits) and time.monotonic() < end_s:
            time.sleep(0.01)
        terminal.end()
        for name, seconds in terminal.seen_s.items():
            # The frame with a verdict counts only if it has values too.
            seen[name].append(max(seconds, terminal.seen_s.get("values", seconds)))
    measured: dict[str, list[float]] = {key: [] for key in ("percent", "traffic", "pss", "rss")}
    terminal = Terminal(argv, env)
    try:
        time.sleep(times.warm_s)
        for _ in range(times.periods):
            used_s, written, began_s = tree_cpu_s(terminal.pid), terminal.written, time.monotonic()
            time.sleep(times.period_s)
            span_s = time.monotonic() - began_s
            measured["percent"].append(100 * (tree_cpu_s(terminal.pid) - used_s) / span_s)
            measured["traffic"].append((terminal.written - written) / span_s / 1000)
            sizes = tree_bytes(terminal.pid)
            measured["pss"].append(sizes["Pss"] / _MB)
            measured["rss"].append(sizes["Rss"] / _MB)
    finally:
        terminal.end()
    return {key: Figures.of(*values) for key, values in {**seen, **measured}.items() if values}


def _is_enough(terminal: Terminal, wanted: Mapping[str, re.Pattern[str]], *, waits: bool) -> bool:
    return set(wanted) <= set(terminal.seen_s) if waits else "values" in terminal.seen_s


# The screen


def _screens(env: Mapping[str, str], job: _Job, began_s: float, times: _Times) -> _Screens:
    """Look at the screen of `teho top` four times per second."""
    tmux = ["tmux", "-L", f"teho-bench-{os.getpid()}"]
    size = ["-x", str(COLUMNS), "-y", str(LINES)]
    subprocess.run(
        [*tmux, "new-session", "-d", *size, f"{SCRIPTS / 'teho'} top"], env=dict(env), check=True
    )
    bad = {name_of(number) for number in range(2 * job.bad)}
    seen = _Screens([], set(), [])
    try:
        time.sleep(times.warm_s)
        for _ in range(times.periods):
            ages: list[float] = []
            seen.ages.append(ages)
            end_s = time.monotonic() + times.period_s
            while time.monotonic() < end_s:
                screen = subprocess.run(
                    [*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
                ).stdout
                if (WAYS["file"] in " ".join(screen.split())) == (job.way == "file"):
                    _look(screen, time.monotonic() - began_s, bad, ages, seen)
                time.sleep(0.25)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return seen


def _look(screen: str, now_s: float, bad: set[str], ages: list[float], seen: _Screens) -> None:
    """Note the ages on one screen, and which nodes it names as silent."""
    seen.named.clear()
    for line in screen.splitlines():
        node = _NODE.match(line)
        if node and _SILENT.search(line):
            seen.named.add(node[1])
        memory = _MEMORY.search(line)
        if not node or not memory:
            continue
        age_s = now_s - float(memory[1].replace(",", "")) * _TO_S[memory[2]]
        shown = _SHOWN_AGE.search(line)
        if node[1] not in bad:
            ages.append(age_s)
        elif shown:
            seen.errors.append(abs(float(shown[1]) - age_s))


def _screen_rows(job: _Job, seen: _Screens) -> list[Row]:
    way = "" if job.way == "connection" else f", values {WAYS[job.way]}"
    begin = f"`teho top`, {job.nodes} nodes{way}"
    rows = []
    if periods := [sorted(ages) for ages in seen.ages if ages]:
        age = Figures.of(*(ages[int(0.95 * len(ages))] for ages in periods))
        what = f"{begin}: age of a value on the screen, 95 % are younger"
        rows.append(Row(what=what, unit="s", ours=age, budget=job.age_s))
    if job.bad:
        dead = {name_of(number) for number in range(job.bad)}
        rows += [
            Row(
                what=f"{begin}: nodes that are dead, and that the screen names, of {job.bad}",
                unit="nodes",
                ours=Figures.of(len(seen.named & dead)),
                verdict="yes" if dead <= seen.named else "**no**",
            ),
            Row(
                what=f"{begin}: nodes that are not dead, but named as silent",
                unit="nodes",
                ours=Figures.of(len(seen.named - dead)),
                budget=0,
            ),
        ]
    if seen.errors:
        what = f"{begin}: error of the age of a slow node on the screen, 95 % are smaller"
        error = Figures.of(sorted(seen.errors)[int(0.95 * len(seen.errors))])
        rows.append(Row(what=what, unit="s", ours=error, budget=_LARGEST_ERROR_S))
    return rows


# Recorders

_PROGRAM = """
import time
def step(size):
    total = 0
    for number in range(size):
        total += number * number
    return total
while True:
    step(20_000)
    time.sleep(0.05)
"""
"""A program that is in several lines, and leaves most of its core to the others."""


class _Recorder:
    """The recorder of a program, on a node with eight stub GPUs of its own."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self._pid = recorder_pid(Path(env["TEHO_HOME"]))
        self.found: dict[str, dict[bool, list[float]]] = {
            key: {False: [], True: []} for key in ("percent", "sampler", "memory")
        }
        """What was measured: without a viewer, and with one."""

    def cpu_s(self) -> tuple[float, float]:
        """Return the CPU time of the recorder, and of its stack sampler."""
        own, *others = members(self._pid)
        return cpu_s(own), sum(map(cpu_s, others))

    def measure(self, before: tuple[float, float], span_s: float, *, is_watched: bool) -> None:
        """Note what was used since an earlier time."""
        for key, used_s, now_s in zip(("percent", "sampler"), before, self.cpu_s(), strict=True):
            self.found[key][is_watched].append(100 * (now_s - used_s) / span_s)
        self.found["memory"][is_watched].append(memory_bytes(self._pid)["Pss"] / _MB)


def _watched_recorders(times: _Times) -> list[Row]:
    """Measure the recorders of two programs, without and with a viewer."""
    say("two recorders without and with a viewer")
    programs = {
        "recorder with eight GPUs": ["sleep", "86400"],
        "recorder of a Python program with eight GPUs": [sys.executable, "-c", _PROGRAM],
    }
    with contextlib.ExitStack() as running_all:
        recorders = {}
        for name, program in programs.items():
            env = running_all.enter_context(stub_environment())
            teho = [str(SCRIPTS / "teho"), "run", "--quiet", "--", *program]
            running_all.enter_context(running(teho, env))
            recorders[name] = _Recorder(env)
        for is_watched in (False, True) * times.recorder_periods:
            _period(list(recorders.values()), times, is_watched=is_watched)
    rows = []
    for name, recorder in recorders.items():
        whats = [
            (f"{name} while it is watched: CPU time, share of one core", "%", "percent", 0.3),
            (f"{name} while it is watched: memory (PSS)", "MB", "memory", 80.0),
        ]
        if "Python" in name:
            what = "stack sampler of this program while it is watched: CPU time, share of one core"
            whats.append((what, "%", "sampler", 0.5))
        rows += [
            Row(
                what=what,
                unit=unit,
                ours=Figures.of(*recorder.found[key][True]),
                peer="without a viewer",
                theirs=Figures.of(*recorder.found[key][False]),
                budget=budget,
            )
            for what, unit, key, budget in whats
        ]
    return rows


def _period(recorders: Sequence[_Recorder], times: _Times, *, is_watched: bool) -> None:
    with contextlib.ExitStack() as viewers:
        for one in recorders if is_watched else ():
            viewer = Terminal([str(SCRIPTS / "teho"), "top"], one.env)
            viewers.callback(viewer.end)
        time.sleep(min(times.warm_s, 12.0))
        before, began_s = [one.cpu_s() for one in recorders], time.monotonic()
        time.sleep(times.period_s)
        for one, used in zip(recorders, before, strict=True):
            one.measure(used, time.monotonic() - began_s, is_watched=is_watched)
