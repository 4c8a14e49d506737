"""What the recorder and the probe cost with a real driver, compared with other tools.

The method is described in docs/benchmarks.md. One process runs while the recorder runs and while
the recorder is stopped, in random order. The recorder and the other tools (nvitop, codecarbon,
Zeus) also run at the same time, in separate processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from common import Row as BenchRow
from common import installed, slower_by
from recorder import side_by_side
from result import Row

from devices import first_sample_ms
from stage import LackingError, Rows, Stage

_PEERS = ("nvitop", "codecarbon", "zeus")
_DOSE = 10
"""Samples per second: ten times the usual number, and ten times the cost."""
_BUDGET_PERCENT = 0.5
_HERE = Path(__file__).resolve().parent


def measure(stage: Stage) -> None:
    """Do the pieces."""
    stage.piece("slowdown by the recorder", lambda: _slowdown(stage, "off"), least_s=35)
    stage.piece("slowdown by recorder and probe", lambda: _slowdown(stage, "auto"), least_s=65)
    stage.piece("time for one reading", lambda: _readings(stage), least_s=15)
    stage.piece("time to the first sample", lambda: _first_samples(stage), least_s=15)
    stage.piece("recorder compared with other tools", lambda: _beside(stage), least_s=50)


def _slowdown(stage: Stage, probe: str) -> Rows:
    """Yield how much slower a training was because of Teho."""
    windows, window_s = (4, 0.2) if stage.is_rehearsal else (44, 0.6)
    # The stack sampler limits its own share of a core, so its cost is not multiplied.
    dose, every = (_DOSE, f"{1000 // _DOSE}ms") if probe == "off" else (1, "1s")
    home = stage.work / f"home-{probe}"
    output = stage.teho(
        "run", "--quiet", "--every", every, "--probe", probe, "--",
        *stage.program("paced", windows, window_s, dose), env={"TEHO_HOME": str(home)},
    )  # fmt: skip
    told = json.loads(output.splitlines()[-1])
    row = slower_by("training", told["awake"], told["again"], _BUDGET_PERCENT)
    yield Row(
        "slower by", "%", teho=row.ours_text, other=row.theirs_text,
        whose="the recorder, stopped again",
        why=f"{row.verdict}; {told['watchers']} processes of Teho; "
        f"{told['steps_per_s']:.0f} steps/s; "
        f"{dose} samples per second, loss divided by {dose}".lstrip("; "),
    )  # fmt: skip


def _readings(stage: Stage) -> Rows:
    count = 5 if stage.is_rehearsal else 100
    told = json.loads(stage.run([sys.executable, _HERE / "readings.py", str(count)], limit_s=90))
    for name, (median, least, most) in told.items():
        yield Row(name, "ms", teho=round(median, 4), why=f"from {least:.3g} to {most:.3g} ms")


def _first_samples(stage: Stage) -> Rows:
    """Yield the time from a program's start to the recorder's first readings."""
    found = sorted(first_sample_ms(stage.env) for _ in range(1 if stage.is_rehearsal else 7))
    if stage.left_s < 0:
        raise LackingError("the time of the stage is used up")
    why = f"from {found[0]:.0f} to {found[-1]:.0f} ms, {len(found)} starts"
    what = "time from the start of the program to the first sample"
    yield Row(what, "ms", teho=round(found[len(found) // 2]), why=why)


def _beside(stage: Stage) -> Rows:
    """Yield what each collector takes of a core and of memory, all at the same time."""
    peers = []
    for peer in _PEERS:
        if why := _why_not(stage, peer):
            yield Row(peer, why=why)
        else:
            peers.append(peer)
    times = (0.5, 0.5, 2) if stage.is_rehearsal else (5.0, 8.0, 4)
    gpus = len(stage.devices["devices"])
    home = {"TEHO_HOME": str(stage.work / "home-beside")}
    (percent, start_s), memory, signals = side_by_side(
        {**stage.env, **home}, *times, gpus=gpus, peers=peers
    )
    for what, unit, figures in (
        ("CPU time after the start, share of one core", "%", percent),
        ("CPU time of the start", "s", start_s),
        ("memory use (PSS)", "MB", memory["Pss"]),
        ("signals in each sample", "", signals),
    ):
        for peer in [peer for peer in peers if peer in figures] or [""]:
            yield _row(BenchRow(what=what, unit=unit, ours=figures["teho"], peer=peer), figures)


def _why_not(stage: Stage, peer: str) -> str:
    """Return why a collector cannot be measured; empty if it sees the GPUs."""
    if not installed(peer):
        return "this tool is not installed here: `make gpu-wheels` says why"
    argv = [sys.executable, str(_HERE.parent / f"peer_{peer}.py")]
    with subprocess.Popen(
        argv, env=stage.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        timer = threading.Timer(stage.seconds(30.0, 10.0), process.kill)
        timer.start()
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        timer.cancel()
        process.kill()
    seen, gpus = said.partition(" ")[0], len(stage.devices["devices"])
    if seen == str(gpus):
        return ""
    return f"this tool does not work here: it printed {said!r}, and there are {gpus} GPUs"


def _row(row: BenchRow, figures: Mapping[str, object]) -> Row:
    theirs = figures.get(row.peer)
    return Row(
        row.what, row.unit, teho=str(row.ours), other=None if theirs is None else str(theirs),
        whose=row.peer, why="median (minimum to maximum)",
    )  # fmt: skip
