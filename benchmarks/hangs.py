"""This section shows what the report says of programs that hang, or seem to hang, and when.

A person who did not know the rule wrote the programs in benchmarks/hangs. The report is made every
10 s while a program runs, as `teho top` does. The time until a hang is named begins with the last
step of the program, or without known steps with its last line of output. The goal is 60 s after ten
usual steps; the programs take less than 0.1 s for a step. Without known steps, the rule waits for 5
minutes by intention. A control is a false alarm if one of its reports says that the run is stuck.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from common import ROOT, Figures, Row, say

from teho.config.settings import Settings
from teho.errors import TehoError
from teho.show.loaded import LoadedRun

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).with_name("hangs")
PYTHON = ROOT / ".frameworks" / "bin" / "python"
"""The Python that runs the programs: it has the frameworks."""
_HANG_S = 100.0
"""A hang is watched for this time, or until it is named."""
_NO_STEPS_S = 400.0
_CONTROL_S = 420.0
_LOOK_S = 10.0
"""Time between two reports, as in `teho top`."""
_WITHOUT_STEPS = frozenset({"h07", "h08", "h09", "h10", "h11"})
_HANGS_AT_ONCE, _CONTROLS_AT_ONCE = 3, 6
"""Six controls on two cores wait for each other: this is harder for the rule."""
_QUICK = "h12"
_TEHO = (sys.executable, "-m", "teho")


class Result(NamedTuple):
    """What one program showed."""

    name: str
    hangs: bool
    """Whether it hangs; if not, it is a control."""
    said: str
    """What the report said of a run that is stuck; empty: nothing."""
    named_after_s: float | None
    """Time from the begin of the hang until the first report that named it."""
    steps: bool
    """Whether Teho knew the steps."""
    failed: str = ""
    """Why it could not be run as intended."""

    @property
    def is_right(self) -> bool:
        """Whether a hang was named, or a control was not."""
        return not self.failed and bool(self.said) == self.hangs

    def __str__(self) -> str:
        after = f" after {self.named_after_s:.0f} s" if self.named_after_s is not None else ""
        verdict = f"NOT RUN ({self.failed})" if self.failed else "WRONG"
        return f"{'right' if self.is_right else verdict}  {self.name}{after}: {self.said or '-'}"


def measure(*, quick: bool) -> list[Row]:
    if not PYTHON.exists():
        say("the programs need frameworks: tests/frameworks.sh")
        return []
    chosen = cases([_QUICK] if quick else ())
    hangs = [one for one in chosen if one["kind"] == "hang"]
    controls = [one for one in chosen if one["kind"] != "hang"]
    results = [
        *run_all(hangs, PYTHON, _HANGS_AT_ONCE), *run_all(controls, PYTHON, _CONTROLS_AT_ONCE)
    ]  # fmt: skip
    return rows_of(results)


def cases(names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the cases with these names, such as `h01`; all cases if there are none."""
    found = tomllib.loads((FOLDER / "cases.toml").read_text())["case"]
    return [one for one in found if not names or one["name"][:3] in names]


def run_all(chosen: Iterable[dict[str, Any]], python: Path, at_once: int) -> Iterable[Result]:
    """Run cases, several at the same time; print and return the result of each."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(at_once) as pool:
        results = []
        for result in pool.map(partial(run_case, python=python, home=Path(folder)), chosen):
            say(str(result))
            results.append(result)
        return results


def rows_of(results: Sequence[Result]) -> list[Row]:
    """Return the lines of the table."""
    ran = [one for one in results if not one.failed]
    hangs = [one for one in ran if one.hangs]
    controls = [one for one in ran if not one.hangs]
    rows = []
    if hangs:
        missed = sum(not one.said for one in hangs)
        rows.append(
            Row(
                what=f"hangs that no report named, of {len(hangs)}", unit="", budget=0,
                ours=Figures.of(missed), ours_text=str(missed),
            )
        )  # fmt: skip
    for steps, what, budget in (
        (True, "time until a hang was named, longest", 60.0),
        (False, "the same without known steps", None),
    ):
        times = [
            one.named_after_s
            for one in hangs
            if one.steps is steps and one.named_after_s is not None
        ]
        if times:
            low, high = min(times), max(times)
            text = f"{high:.0f} (shortest {low:.0f}, {len(times)} programs)"
            rows.append(
                Row(what=what, unit="s", ours=Figures.of(high), ours_text=text, budget=budget)
            )
    if controls:
        alarms = sum(bool(one.said) for one in controls)
        rows.append(
            Row(
                what=f"controls with a false alarm, of {len(controls)}", unit="", budget=0,
                ours=Figures.of(alarms), ours_text=str(alarms),
            )
        )  # fmt: skip
    return rows


def run_case(case: dict[str, Any], python: Path, home: Path) -> Result:
    """Run one case until its hang is named or it ends, and make a report again and again.

    Args:
        case: an entry of `cases.toml`.
        python: the Python that runs it.
        home: a folder for recordings.
    """
    name, hangs = case["name"], case["kind"] == "hang"
    process, output = _begin(case, python, home)
    began_s = time.monotonic()
    patience_s = _NO_STEPS_S if name[:3] in _WITHOUT_STEPS else _HANG_S
    # The hang begins later on a slow machine.
    limit_s = 2 * case["hang_after_s"] + patience_s if hangs else _CONTROL_S
    said, named_s, look_s = "", None, began_s + _LOOK_S
    while process.poll() is None and not said and time.monotonic() < began_s + limit_s:
        try:
            process.wait(max(0.0, look_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            look_s = time.monotonic() + _LOOK_S
            if said := _stuck(home / name):
                named_s = time.monotonic()
    by_itself = process.poll() is not None
    _end(process)
    output.join(10)
    failed = ""
    if hangs and by_itself:
        failed = f"it ended by itself with {process.returncode}"
    elif not hangs and not said and not (by_itself and process.returncode == 0):
        failed = f"it did not end well: {process.returncode}"
    hang_s, has_steps = _last_progress(home / name, output)
    after_s = named_s - hang_s if hangs and named_s is not None and hang_s is not None else None
    if not hangs:
        said = said or _stuck(home / name)
    return Result(name, hangs, said, after_s, has_steps, failed)


class _Output(threading.Thread):
    """Reads the output of a program, and keeps the time of the last line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._process = process
        self.last_s: float | None = None
        self.start()

    def run(self) -> None:
        assert self._process.stdout is not None
        for _ in self._process.stdout:
            self.last_s = time.monotonic()


def _begin(
    case: dict[str, Any], python: Path, home: Path
) -> tuple[subprocess.Popen[bytes], _Output]:
    name = case["name"]
    torchrun = [str(python), "-m", "torch.distributed.run"]
    command: list[str] = []
    for word in case["command"]:
        if word == "{torchrun}":
            command += torchrun
        else:
            command.append(word.format(here=FOLDER, python=python))
    env = {**os.environ, "TEHO_HOME": str(home / name)}
    process = subprocess.Popen(
        [*_TEHO, "run", "-q", "--name", name, "--", *command],
        env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    return process, _Output(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program as a scheduler does at a time limit."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            continue


def _stuck(home: Path) -> str:
    """Return what the report says of a run that is stuck; empty: nothing."""
    for directory in home.glob("runs/[!.]*"):
        try:
            findings = LoadedRun(directory, Settings()).findings
        except TehoError:  # the recording is just being made
            continue
        return next((one.sentence for one in findings if one.kind == "run_stuck"), "")
    return ""


def _last_progress(home: Path, output: _Output) -> tuple[float | None, bool]:
    """Return the monotonic time of the last step or line of output, and whether it is a step.

    All processes of this machine have the same monotonic clock.
    """
    runs = sorted(home.glob("runs/[!.]*"))
    steps = [
        main.process.progress[-1].last_s
        for directory in runs
        for main in _mains(directory)
        if main.process.progress and main.process.progress[-1].steps >= 10
    ]
    return (max(steps), True) if steps else (output.last_s, False)


def _mains(directory: Path) -> Sequence[Any]:
    program = LoadedRun(directory, Settings()).summary.program
    return program.mains if program else ()
