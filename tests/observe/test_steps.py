"""Several tasks of a job's step: one recording, one recorder a node, and every task's own end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from step_tasks import only_run, start, step_environment, wait
from support import TEHO
from teho.model.run import RunState
from teho.store.read import read_run, rows_of_node, run_state

SLEEP = "import time; time.sleep({seconds})"


def test_eight_tasks_on_two_nodes_make_one_recording(tmp_path: Path) -> None:
    codes, said = wait(start(tmp_path, [SLEEP.format(seconds=1)] * 8, nodes=2, report="brief"))
    assert codes == [0] * 8
    directory = only_run(tmp_path)
    run = read_run(directory)
    assert [node.name for node in run.nodes] == ["n1", "n2"]
    assert [node.ranks for node in run.nodes] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert all(node.sealed for node in run.nodes)
    assert [task.rank for task in run.tasks] == list(range(8))
    assert [task.node for task in run.tasks] == ["n1"] * 4 + ["n2"] * 4
    assert run.end is not None
    assert run.end.exit_code == 0
    assert run_state(run, directory) is RunState.FINISHED
    assert run.step is not None
    assert (run.step.task_count, run.step.node_count, run.step.hosts) == (8, 2, ("n1", "n2"))
    # One of them tells of it, and says it once.
    assert sum("teho" in text for text in said) == 1


def test_a_node_counts_the_processes_of_all_its_tasks_once(tmp_path: Path) -> None:
    # All three have to be alive at the same time, however late one of them starts.
    burn = (
        "import os, pathlib, time\nwhile time.process_time() < 0.7: pass\n"
        "flags = pathlib.Path(os.environ['TEHO_HOME'], 'burned'); flags.mkdir(exist_ok=True)\n"
        "(flags / str(os.getpid())).touch()\n"
        "while len(list(flags.iterdir())) < 3: time.sleep(0.05)\n"
        "time.sleep(1)"
    )
    codes, _ = wait(start(tmp_path, [burn] * 3, nodes=1))
    assert codes == [0] * 3
    directory = only_run(tmp_path)
    rows = rows_of_node(directory, "n1", "node", ["job_cpu_s", "job_processes"], [])
    assert rows is not None
    cpu_s = max(filter(None, rows.table["job_cpu_s"].to_pylist()))
    assert 1.95 <= cpu_s < 3.5  # three programs of 0.7 s less ticks, and their interpreters
    assert max(filter(None, rows.table["job_processes"].to_pylist())) == 3


def test_who_passes_output_on_is_no_process_of_the_step(tmp_path: Path) -> None:
    tasks = []
    for rank in (1, 0):  # so that rank 0, whose output is kept, has its recorder in another task
        argv = [
            *TEHO,
            "run",
            "--every",
            "100ms",
            "--keep-output",
            "--",
            "sh",
            "-c",
            "echo a; read b",
        ]
        env = step_environment(tmp_path, rank, nodes=1, per_node=2)
        tasks.append(
            subprocess.Popen(
                argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob("runs/*/nodes/n1.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
    # On a loaded machine, the second task may start late: samples of both come after its output.
    assert [task.stdout.readline() for task in tasks] == ["a\n", "a\n"]
    time.sleep(1)
    assert [task.communicate("b\n", timeout=60)[0] for task in tasks] == ["", ""]
    directory = only_run(tmp_path)
    assert (directory / "stdout").read_text() == "a\n"
    rows = rows_of_node(directory, "n1", "node", ["job_processes"], [])
    assert rows is not None
    assert max(filter(None, rows.table["job_processes"].to_pylist())) == 2


def test_tasks_that_end_early_do_not_wait_for_the_others(tmp_path: Path) -> None:
    until_told = "import sys; sys.stdin.read()"
    tasks = start(tmp_path, ["pass", until_told, "pass", until_told], nodes=1)
    wait([tasks[0], tasks[2]])  # the others go on until their input ends
    assert [tasks[i].poll() for i in (1, 3)] == [None, None]
    assert read_run(only_run(tmp_path)).end is None
    wait([tasks[1], tasks[3]])
    run = read_run(only_run(tmp_path))
    assert run.nodes[0].sealed
    assert run.end is not None


def test_the_first_failure_is_the_steps_own(tmp_path: Path) -> None:
    killed = "import os; os.kill(os.getpid(), 9)"
    programs = [SLEEP.format(seconds=1), "raise SystemExit(3)", killed]
    codes, _ = wait(start(tmp_path, programs, nodes=1))
    assert codes == [0, 3, -9]
    run = read_run(only_run(tmp_path))
    assert run.end is not None
    assert (run.end.exit_code, run.end.signal) in {(3, None), (None, 9)}
    ends = {task.rank: (task.end.exit_code, task.end.signal) for task in run.tasks if task.end}
    assert ends == {0: (0, None), 1: (3, None), 2: (None, 9)}


def test_a_requeued_job_is_recorded_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for count in ("0", "1"):
        monkeypatch.setenv("SLURM_RESTART_COUNT", count)
        wait(start(tmp_path, [SLEEP.format(seconds=0.2)] * 2, nodes=1))
    assert [len(list((run / "tasks").iterdir())) for run in (tmp_path / "runs").iterdir()] == [2, 2]


def test_steps_of_one_job_are_recordings_of_their_own(tmp_path: Path) -> None:
    for step in ("0", "1"):
        wait(start(tmp_path, [SLEEP.format(seconds=0.2)] * 2, nodes=1, step=step))
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_killed_recorder_harms_neither_programs_nor_the_other_node(tmp_path: Path) -> None:
    # The programs run until `wait` closes their input, however late the recorder starts.
    tasks = start(tmp_path, ["import sys; sys.stdin.read()"] * 4, nodes=2)
    node = tmp_path / "runs"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        files = list(node.glob("*/nodes/n2.json"))
        if files:
            break
        time.sleep(0.05)
    os.kill(json.loads(files[0].read_bytes())["recorder_pid"], signal.SIGKILL)
    codes, _ = wait(tasks)
    assert codes == [0] * 4
    run = read_run(only_run(tmp_path))
    assert [node.sealed for node in run.nodes] == [True, False]
    assert run.end is not None
    assert any("SIGKILL" in trouble.what for task in run.tasks for trouble in task.troubles)


def start_and_signal(home: Path, number: int) -> list[subprocess.Popen[str]]:
    """Start four tasks on two nodes, and send each a signal when both nodes have written rows."""
    tasks = start(home, [SLEEP.format(seconds=30)] * 4, nodes=2)
    deadline = time.monotonic() + 20
    while len(list(home.glob("runs/*/live/*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    for task in tasks:
        os.killpg(task.pid, number)
    return tasks


def test_killed_tasks_report_no_end(tmp_path: Path) -> None:
    tasks = start_and_signal(tmp_path, signal.SIGKILL)
    wait(tasks)
    directory = only_run(tmp_path)
    run = read_run(directory)
    assert run.tasks == ()
    assert run.end is None
    assert [node.sealed for node in run.nodes] == [False, False]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_ends_all_and_the_recording_is_whole(tmp_path: Path, number: int) -> None:
    tasks = start_and_signal(tmp_path, number)
    codes, _ = wait(tasks)
    assert codes == [-number] * 4
    run = read_run(only_run(tmp_path))
    assert run.end is not None
    assert run.end.signal == number
    assert all(node.sealed for node in run.nodes)
