"""Programs that really hang are named, with the line in which they wait.

The thresholds of `run_stuck` are 45 s and more. Here they are two seconds, so that a program
that has hung for some seconds is judged as one that has hung for minutes. benchmarks/hangs has the
same kinds of hangs in longer programs, with the real thresholds, and 20 controls.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from support import FRAMEWORKS, TEHO, WITHOUT_COMPILER, lacks_framework, wait_for
from teho.config.settings import Settings
from teho.show.loaded import LoadedRun
from teho.store import slices

THRESHOLDS = """
[run_stuck]
silent_min_s = 1.5
no_steps_min_s = 1.5
"""
END_S = 1.2
"""In place of the last 45 s of a program."""

STEPS = """
import os, teho, time
def steps():
    for _ in range(30):
        teho.step()
        time.sleep(0.01)
    open(os.environ["HANGS"], "w").close()
"""
PROGRAMS = {
    "two locks": """
        import threading
        first, second = threading.Lock(), threading.Lock()
        def snapshot():
            with second:
                time.sleep(0.6)
                with first: pass
        threading.Thread(target=snapshot, daemon=True).start()
        with first:
            steps()
            second.acquire()
        """,
    "a prompt in a batch job": """
        steps()
        input("overwrite best.pt? ")
        """,
    "a file that does not answer": """
        os.mkfifo(os.environ["HANGS"] + ".shard")
        steps()
        open(os.environ["HANGS"] + ".shard", "rb")
        """,
    "a dead worker": """
        import multiprocessing, signal
        def work(queue):
            os.kill(os.getpid(), signal.SIGKILL)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        context.Process(target=work, args=(queue,)).start()
        steps()
        queue.get()
        """,
    "the lock of OpenMP in a fork": """
        import ctypes
        library = ctypes.CDLL(os.environ["OPENMP"])
        library.work(2)
        steps()
        child = os.fork()
        if child == 0:
            library.work(2)
            os._exit(0)
        os.waitpid(child, 0)
        """,
}
LINES = {
    "two locks": "`second.acquire()`",
    "a prompt in a batch job": "`input(",
    "a file that does not answer": '`open(os.environ["HANGS"] + ".shard", "rb")`',
    "a dead worker": "`queue.get()`",
    "the lock of OpenMP in a fork": "`os.waitpid(child, 0)`",
    "a rank": '`open(os.environ["HANGS"] + ".shard", "rb")` (ranks.py:',
}
OPENMP = """
#include <omp.h>
int work(int threads) {
    int sum = 0;
    #pragma omp parallel num_threads(threads) reduction(+:sum)
    sum += omp_get_thread_num();
    return sum;
}
"""
DETAILS = {
    "two locks": "and another thread of it waits for a lock in `with first: pass` (two locks.py:",
    "a dead worker": " was ended by SIGKILL.",
    "a rank": "the other rank waits for rank 1 in ",
}
"""What is also found when the program has hung for some time."""
RANKS = """
import os, sys, time
rank = int(sys.argv[1])
os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters())
for step in range(40):
    if rank == 1 and step == 30:
        os.mkfifo(os.environ["HANGS"] + ".shard")
        open(os.environ["HANGS"], "w").close()
        open(os.environ["HANGS"] + ".shard", "rb")
    time.sleep(0.01)
    model(torch.ones(1, 4)).sum().backward()
    dist.all_reduce(model.weight.grad)
    optimizer.step()
"""


class Hanging:
    """A recorded program that hangs."""

    def __init__(self, folder: Path, name: str, command: list[str], **variables: str) -> None:
        self.home = folder / name
        self.marker = folder / f"{name}.hangs"
        self._process = subprocess.Popen(
            [*TEHO, "run", "-q", "--every", "200ms", "--", *command],
            env={**os.environ, "TEHO_HOME": str(self.home), "HANGS": str(self.marker), **variables},
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def end(self) -> None:
        """End it as a scheduler does."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.communicate(timeout=60)

    def said(self, folder: Path) -> str:
        """Return what the report says of a run that is stuck."""
        (run,) = self.home.glob("runs/[!.]*")
        loaded = LoadedRun(run, Settings(thresholds=str(folder / "thresholds.toml")))
        return " ".join(one.sentence for one in loaded.findings if one.kind == "run_stuck")


def _openmp(folder: Path) -> str:
    """Return the path of a library with a parallel region; empty if it cannot be made."""
    source, library = folder / "work.c", folder / "work.so"
    source.write_text(OPENMP)
    if shutil.which("gcc") is None:
        return ""
    made = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-fopenmp", "-o", library, source], check=False
    )
    return str(library) if made.returncode == 0 else ""


@pytest.fixture(scope="module")
def hanging(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All programs, which hang at the same time -> what their reports say."""
    folder = tmp_path_factory.mktemp("hangs")
    (folder / "thresholds.toml").write_text(THRESHOLDS)
    library = _openmp(folder)
    running: dict[str, Hanging] = {}
    for name, program in PROGRAMS.items():
        if library or "OpenMP" not in name:
            path = folder / f"{name}.py"
            path.write_text(STEPS + dedent(program))
            running[name] = Hanging(folder, name, [sys.executable, str(path)], OPENMP=library)
    if not lacks_framework("torch"):
        path = folder / "ranks.py"
        path.write_text(WITHOUT_COMPILER + RANKS)
        python = str(FRAMEWORKS / "bin" / "python")
        both = f'{python} {path} 0 "$1" & exec {python} {path} 1 "$1"'
        running["a rank"] = Hanging(folder, "a rank", ["sh", "-c", both, "sh", _free_port()])
    said = dict.fromkeys(running, "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "_END_S", END_S)
        try:
            wait_for(lambda: all(one.marker.exists() for one in running.values()), 60)
            end_s = time.monotonic() + 60
            # The first reports may lack the steps, or the other rank.
            while time.monotonic() < end_s and (unnamed := _unnamed(said)):
                said |= {name: running[name].said(folder) for name in unnamed}
                time.sleep(0.5)
        finally:
            for one in running.values():
                one.end()
    return said


def _unnamed(said: dict[str, str]) -> list[str]:
    return [
        name
        for name, text in said.items()
        if not all(one in text for one in (LINES[name], "no step", DETAILS.get(name, "")))
    ]


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_hangs_is_named_with_its_line(hanging: dict[str, str], name: str) -> None:
    if name not in hanging:
        pytest.skip("gcc with OpenMP is not installed")
    assert hanging[name].startswith("The run is stuck: no step for ")
    assert f"The program waits in {LINES[name]}" in hanging[name]


def test_a_dead_worker_is_named_with_its_pid(hanging: dict[str, str]) -> None:
    said = hanging["a dead worker"]
    assert re.search(r"Of the processes that it started, process \d+ was ended by SIGKILL\.$", said)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="threads have no numbers before Python 3.11")
def test_a_deadlock_is_named_with_both_lines(hanging: dict[str, str]) -> None:
    said = hanging["two locks"]
    assert re.search(
        r"waits in `second\.acquire\(\)` \(two locks\.py:\d+\), and another thread of it waits for "
        r"a lock in `with first: pass` \(two locks\.py:\d+\)\.$",
        said,
    )


@pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
def test_the_rank_that_stops_is_named_with_its_line(hanging: dict[str, str]) -> None:
    said = hanging["a rank"]
    assert said.startswith("The run is stuck: no step for ")
    assert f"Rank 1 waits in {LINES['a rank']}" in said
    assert "the other rank waits for rank 1 in `dist.all_reduce(model.weight.grad)`" in said
