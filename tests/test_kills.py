"""SIGKILL at any moment, of program, recorder, supervisor or all, leaves a recording."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from support import SOAK, TEHO
from teho.config.settings import Settings
from teho.model.run import RunState
from teho.show.loaded import LoadedRun
from teho.store.read import read_run

KILLS = 200 if SOAK else 15
"""Each process is killed once in the first five."""
SEED = random.randrange(10**6)
WHO = ("program", "recorder", "supervisor", "all", "both")
PERIOD_S = 0.1
FLUSH_S = 10 * PERIOD_S
PROGRAM = "import time; end = time.monotonic() + 4\nwhile time.monotonic() < end: time.sleep(0.01)"


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat[1]) == pid:
                found.append(int(entry.name))
    return found


def is_program(pid: int) -> bool:
    try:
        return b"time.sleep(0.01)" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def wait_until_gone(pids: list[int], timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        alive = []
        for pid in pids:
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                alive.append(pid)
        if not alive:
            return
        time.sleep(0.05)
    raise AssertionError(f"still alive: {alive}")


class Killed(NamedTuple):
    """A run after a kill."""

    who: str
    loaded: LoadedRun
    at_s: float
    """Time of the kill after the start of the run."""
    recorded_s: float
    """Time for which the recorder had been at work; 0: a slow machine had not yet started it."""


def one_kill(number: int, home: Path) -> Killed:
    """Kill somebody after a random time."""
    dice = random.Random(SEED + number)
    own_home = home / str(number)
    process = subprocess.Popen(
        [*TEHO, "run", "--quiet", "--every", f"{PERIOD_S}s", "--", sys.executable, "-c", PROGRAM],
        env={**os.environ, "TEHO_HOME": str(own_home)},
        start_new_session=True,
    )
    end = time.monotonic() + 30
    while not (found := list(own_home.glob("runs/[!.]*"))) and time.monotonic() < end:
        time.sleep(0.005)
    (directory,) = found
    until_s, began_s = time.monotonic() + dice.uniform(0, 3.5), None
    while (now_s := time.monotonic()) < until_s:
        if began_s is None and any(directory.glob("nodes/*.json")):
            began_s = now_s
        time.sleep(0.01)
    offspring = children(process.pid)
    programs = [pid for pid in offspring if is_program(pid)]
    recorders = [pid for pid in offspring if pid not in programs]
    who = dice.choice(WHO) if number >= len(WHO) else WHO[number]
    victims = {
        "program": programs,
        "recorder": recorders,
        "supervisor": [process.pid],
        "both": [*programs, *recorders],
        "all": [process.pid, *programs, *recorders],
    }[who]
    killed_s = time.monotonic()
    kill(victims)
    if who == "recorder":
        kill(programs)  # the run need not go on to its end here
    elif who == "supervisor":
        kill(programs)
    process.wait(30)
    wait_until_gone([*programs, *recorders])
    loaded = LoadedRun(directory, Settings())
    stamp = loaded.run.started_at.timestamp()
    at_s = time.time() - (time.monotonic() - killed_s) - stamp
    return Killed(who, loaded, at_s, 0.0 if began_s is None else killed_s - began_s)


@pytest.mark.soak
def test_every_kill_leaves_a_readable_recording(tmp_path: Path) -> None:
    print(f"SEED = {SEED}")  # shown if it fails
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda number: one_kill(number, tmp_path), range(KILLS)))
    assert len(outcomes) == KILLS
    seen = set()
    for who, loaded, killed_at_s, recorded_s in outcomes:
        seen.add(who)
        assert loaded.view.verdict  # summary, findings and view are all made
        ended = loaded.state
        expected = RunState.INTERRUPTED if who in {"supervisor", "all"} else RunState.FINISHED
        assert ended is expected, who
        rows = loaded.table("node")["elapsed_s"].to_pylist()
        assert rows == sorted(rows)
        # One flush interval may be lost.
        if recorded_s > FLUSH_S + 1.0:
            assert rows, (who, killed_at_s)
            assert rows[-1] > killed_at_s - FLUSH_S - 1.5, (who, killed_at_s)
        if who in {"recorder", "both"}:
            assert any("killed by SIGKILL" in line for line in loaded.view.troubles)
        if who in {"program", "both"}:
            assert loaded.run.end is not None
            assert loaded.run.end.signal == signal.SIGKILL
    assert seen == set(WHO)


def test_the_recorder_continues_without_its_supervisor(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*TEHO, "run", "--quiet", "--every", "100ms", "--", "sleep", "2.5"],
        env={**os.environ, "TEHO_HOME": str(tmp_path)},
        start_new_session=True,
    )
    until = time.monotonic() + 30  # until the first rows, however late they come
    while not list(tmp_path.glob("runs/*/live/*")) and time.monotonic() < until:
        time.sleep(0.02)
    offspring = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until_gone(offspring)
    (directory,) = tmp_path.glob("runs/*")
    run = read_run(directory)
    assert run.end is None
    assert run.nodes[0].sealed
    loaded = LoadedRun(directory, Settings())
    # The program's 2.5 s, and up to 0.5 s until its end is noticed: longer on a loaded machine.
    assert 2.2 < loaded.summary.elapsed_s < 6
