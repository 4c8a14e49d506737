"""Planned jobs on two nodes of a real Grid Engine of ARC4's shape, by `-l nodes=N,ppn=P,tpp=1`."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from grid_engine_twin import PROGRAMS as GRID_ENGINE
from grid_engine_twin import GridEngineTwin, started, why_not
from node_namespaces import why_no_nodes

from support import wait_for
from teho.clusters.catalogue import load_cluster
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script
from terminal import keys, screen, terminal

pytestmark = pytest.mark.xdist_group("grid_engine")

NODES = ("node01.arc4.leeds.ac.uk", "node02.arc4.leeds.ac.uk")
TEHO = (sys.executable, "-m", "teho")
NOTE = (
    'echo "$(hostname) {rank} {size} $OMP_NUM_THREADS $NSLOTS $OWN $TEHO_CLUSTER" '
    "> {folder}/{rank}.txt"
)


@pytest.fixture(scope="module")
def twin() -> Iterator[GridEngineTwin]:
    reason = why_not() or why_no_nodes()
    if not (reason or shutil.which("mpirun")):
        reason = "no mpirun here; tests/debian-packages.sh installs it"
    if reason:
        pytest.skip(reason)
    with started(load_cluster("arc4", {}), NODES) as one:
        yield one


@pytest.fixture
def folder() -> Iterator[Path]:
    # A short path, for Open MPI's sockets.
    with tempfile.TemporaryDirectory(prefix="nodes-") as name:
        yield Path(name)


def ran(
    twin: GridEngineTwin, folder: Path, launcher: str, command: tuple[str, ...], **options: bool
) -> list[list[str]]:
    """Plan, write and run a job with two cores on each of two nodes; return what its ranks note."""
    request = Request(
        gpus=0, nodes=2, cpus=4, launcher=launcher, command=command, time_s=900.0, name="two",
        lines=("export OWN=yes",),
    )  # fmt: skip
    (option, *_) = answer(request, [twin.cluster], even_if_retired=True).options
    script = write_script(
        option, twin.cluster, ScriptOptions(teho=TEHO, framework="none", **options)
    )
    assert "#$ -l nodes=2,ppn=2,tpp=1\n" in script.text
    (folder / "job.sh").write_text(script.text)
    (folder / "home").mkdir()
    (folder / "tmp").mkdir()
    sent = twin.ask(
        # As root: the twin's user may not read this Python.
        *(str(GRID_ENGINE / "qsub"), "-V", "-j", "y", "-o", str(folder / "out")),
        *("-sync", "y", "job.sh"),
        environment={
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "HOME": str(folder / "home"),
            "TEHO_HOME": str(folder / "teho"),
            "TMPDIR": str(folder / "tmp"),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        },
        cwd=folder,
        patience_s=300.0,
    )
    output = folder / "out"
    said = output.read_text(errors="replace") if output.exists() else ""
    assert sent.returncode == 0, sent.stdout + sent.stderr + said
    return [path.read_text().split() for path in sorted(folder.glob("*.txt"))]


def test_mpirun_in_a_plain_command_starts_a_process_on_each_core(
    twin: GridEngineTwin, folder: Path
) -> None:
    note = NOTE.format(rank="$OMPI_COMM_WORLD_RANK", size="$OMPI_COMM_WORLD_SIZE", folder=folder)
    ranks = ran(twin, folder, "plain", ("mpirun", "sh", "-c", note))
    assert ranks == [
        [NODES[rank // 2], str(rank), "4", "1", "4" if rank < 2 else "2", "yes"]
        for rank in range(4)
    ]


def test_launch_starts_a_task_on_each_node(twin: GridEngineTwin, folder: Path) -> None:
    note = NOTE.format(rank="$RANK", size="$WORLD_SIZE", folder=folder)
    ranks = ran(twin, folder, "launch", ("sh", "-c", note), record=True)
    assert [[*words[:4], *words[5:]] for words in ranks] == [
        [NODES[rank], str(rank), "2", "2", "yes", "arc4"] for rank in range(2)
    ]
    (run,) = (folder / "teho/runs").iterdir()
    cores = {}
    for path in sorted(run.glob("nodes/*.json")):
        cores[path.stem] = json.loads(path.read_text())["allocation"]["cores_asked"]
    assert cores == dict.fromkeys(NODES, 2)
    assert len([*run.glob("tasks/*.json")]) == 2


def test_a_job_on_two_nodes_is_watched_in_a_terminal(twin: GridEngineTwin, folder: Path) -> None:
    environment = {
        **os.environ,
        **twin.environment,  # for qstat, which reports the time limit
        "TEHO_HOME": str(folder / "teho"),
        "TERM": "xterm-256color",
    }
    waits = (
        f"for i in $(seq 180); do [ -e {folder}/seen ] && break; sleep 0.5; done; "
        f"touch {folder}/$RANK.txt"
    )
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(ran, twin, folder, "launch", ("sh", "-c", waits), record=True)
        try:
            wait_for(lambda: len([*folder.glob("teho/runs/*/live/*")]) == 2, within_s=120)
            top = shlex.join(twin.inside([*TEHO, "top"], folder))
            with terminal(top, 110, 30, environment) as tmux:

                def until(pattern: str) -> None:
                    end_s = time.monotonic() + 60
                    while not re.search(pattern, seen := screen(tmux), re.MULTILINE):
                        assert time.monotonic() < end_s, seen
                        time.sleep(0.1)

                for name in NODES:  # a cell for each core, their mean, the memory, and the age
                    until(rf"{name} +\d\d +\d+ % +[\d.]+ MiB.* now$")
                until(r"^[✗!i✓?] (?!Teho is making)\w.*\.")
                until(r"^running · .* · 1[34] min .*until the time limit · .*values by connection")
                keys(tmux, "Enter")
                until(r"node node0\d\.arc4\.leeds\.ac\.uk  \d+ s old")
                until(r"Each core, ×10 % +\d\d$")
                until(r"^ +Memory +[\d.]+ MiB")
                until(r"seq 180")  # its processes
                keys(tmux, "q")
                wait_for(lambda: not [*folder.glob("teho/runs/*/leases/*")])
        finally:
            (folder / "seen").touch()
            assert len(job.result()) == 2
