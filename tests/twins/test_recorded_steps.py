"""A step of four nodes on a live Slurm makes one recording, however it ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from launched import PROGRAMS
from recording_site import RecordingSite, recording_site

from memory_group import EAT, memory_group
from support import lacks_framework
from teho.model.run import Run, RunState
from teho.store.read import read_run, run_state

NODES = 4
EACH = int(os.environ.get("TEHO_TEST_RANKS", "1"))
"""Ranks of the training on each node: 8 by hand, one where other tests wait."""
SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time={minutes} --gres=gpu:v100:1
#SBATCH --nodes=4 --ntasks-per-node={tasks} --output={output}
srun {before}{teho} run --every 500ms --quiet -- {command}
"""
WAIT = "python3 -c 'import time; time.sleep(120)'"
STUCK = """\
import teho, threading, time
for _ in range(40):
    teho.step()
    time.sleep(0.05)
lock = threading.Lock()
lock.acquire()
lock.acquire()
"""
"""Makes steps, and then waits for a lock for ever."""


class Site(RecordingSite):
    """The twin, with jobs of one step."""

    limited = ""
    """A stuck job with a limit of two minutes, submitted first: the others run meanwhile."""

    def submit(self, command: str, *, tasks: int = 2, minutes: int = 5, before: str = "") -> str:
        script = SCRIPT.format(
            command=command,
            tasks=tasks,
            minutes=minutes,
            before=before,
            output=self.folder / "%j.out",
            teho=f"{sys.executable} -m teho",
        )
        return self.send(script, PROGRAMS)

    def directory(self, job: str) -> Path:
        link = self.home / "steps" / f"slurm-puhti-{job}.0"
        return self.home / "runs" / link.readlink()

    def records(self, job: str) -> bool:
        """Tell whether every node of a job has rows on the disk."""
        try:
            return len(list((self.directory(job) / "live").iterdir())) == NODES
        except OSError:
            return False

    def run(self, job: str) -> Run:
        return read_run(self.directory(job))

    def report(self, job: str, form: str = "text") -> str:
        answer = self.teho("report", job, "--format", form)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def site(slurm: None) -> Iterator[Site]:
    with recording_site(NODES) as started:
        site = Site(started.twin, started.folder)
        (site.folder / "stuck.py").write_text(STUCK)
        program = f"{sys.executable} {site.folder / 'stuck.py'}"
        site.limited = site.submit(program, tasks=1, minutes=2)
        yield site


def check_whole(run: Run, tasks: int) -> None:
    """All nodes have their part, and all ranks told their end."""
    assert run.step is not None
    assert run.step.task_count == NODES * tasks
    assert run.step.hosts == tuple(node.name for node in run.nodes)
    assert [node.ranks for node in run.nodes] == [
        tuple(range(n * tasks, (n + 1) * tasks)) for n in range(NODES)
    ]
    assert [task.rank for task in run.tasks] == list(range(NODES * tasks))
    # One clock serves all nodes of the twin.
    assert all(abs(node.clock.ahead_s) < 0.05 for node in run.nodes if node.clock)


def test_a_training_on_4_nodes(site: Site, torch_python: Path, tmp_path: Path) -> None:
    if reason := lacks_framework("torch"):
        pytest.skip(reason)
    # Gloo waits in a loop: so many ranks on two cores would starve the tests beside this one.
    command = f"nice -n 19 {sys.executable} -m teho launch -- {torch_python} ddp.py {tmp_path}"
    job = site.submit(command, tasks=EACH)
    site.wait(job)
    run = site.run(job)
    check_whole(run, EACH)
    assert run.end is not None
    assert run.end.exit_code == 0, site.said(job)
    assert all(node.sealed for node in run.nodes)
    assert sum(node.clock is not None for node in run.nodes) == NODES - 1


def test_the_recorder_of_a_node_is_killed(site: Site) -> None:
    job = site.submit("python3 -c 'import time; time.sleep(8)'")
    site.until("rows of all nodes", lambda: site.records(job))
    victim = site.run(job).nodes[2]
    assert victim.recorder_pid is not None
    os.kill(victim.recorder_pid, signal.SIGKILL)
    site.wait(job)
    run = site.run(job)
    check_whole(run, 2)
    assert [node.sealed for node in run.nodes] == [True, True, False, True]
    assert run.end is not None
    assert run.end.exit_code == 0
    assert any("SIGKILL" in trouble.what for task in run.tasks for trouble in task.troubles)


def test_the_job_is_cancelled(site: Site) -> None:
    job = site.submit(WAIT)
    site.until("rows of all nodes", lambda: site.records(job))
    site.twin.run("scancel", job)
    site.wait(job)
    run = site.run(job)
    check_whole(run, 2)
    assert all(node.sealed for node in run.nodes)
    assert run.end is not None
    assert run.end.signal == signal.SIGTERM
    facts = {fact["key"]: fact["value"] for fact in json.loads(site.report(job, "json"))["facts"]}
    assert facts["scheduler_state"].startswith("cancelled")
    assert facts["task_count"] == NODES * 2


def test_memory_runs_out_on_a_node(site: Site) -> None:
    """The kernel kills a rank, in a cgroup such as a scheduler gives a job on a node."""
    with memory_group(400 * 1024**2) as members:
        enter = site.folder / "enter.sh"
        enter.write_text(f'[ "$SLURM_NODEID" != 2 ] || echo $$ > {members}\nexec "$@"\n')
        eat = EAT.replace("range(50)", "range(30)")  # the other nodes take as much
        job = site.submit(f'python3 -c "{eat}"', tasks=1, before=f"bash {enter} ")
        site.wait(job)
    run = site.run(job)
    check_whole(run, 1)
    assert [task.end.signal if task.end else None for task in run.tasks][2] == signal.SIGKILL
    name = run.nodes[2].name
    report = " ".join(site.report(job).split())
    assert f"The operating system killed 1 process on {name} because memory ran out." in report
    assert "400 MiB" in report


def test_a_node_dies(site: Site) -> None:
    job = site.submit(WAIT)
    site.until("rows of all nodes", lambda: site.records(job))
    victim = site.run(job).nodes[1]
    mark = f"SLURMD_NODENAME={victim.name}\0".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark in variables and f"SLURM_JOB_ID={job}\0".encode() in variables:
            os.kill(int(folder.name), signal.SIGKILL)
    site.twin.run("scancel", job)
    site.wait(job)
    run = site.run(job)
    assert [task.rank for task in run.tasks] == [0, 1, 4, 5, 6, 7]
    assert run.end is None
    assert [node.sealed for node in run.nodes] == [True, False, True, True]
    assert run_state(run, site.directory(job)) in {RunState.RUNNING, RunState.INTERRUPTED}


def test_the_time_limit_comes(site: Site) -> None:
    job = site.limited
    site.wait(job)
    run = site.run(job)
    check_whole(run, 1)
    assert all(node.sealed for node in run.nodes)
    assert run.end is not None
    assert run.end.signal == signal.SIGTERM
    assert 110 < run.end.elapsed_s < 150
    assert "ended at its time limit" in " ".join(site.report(job).split())
    # The limit ended it, but it had made no step for long: that is the first finding.
    first = json.loads(site.report(job, "json"))["findings"][0]
    assert first["kind"] == "run_stuck"
    assert first["sentence"].startswith("The run is stuck: no step for ")
    assert "`lock.acquire()` (stuck.py:7)" in first["sentence"]
