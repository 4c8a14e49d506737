"""`teho record-node`: a recorder without a program of its own, led through its input and output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from step_tasks import JOB
from support import TEHO
from teho.model.run import Run, RunState, Step
from teho.observe.plan import Orders, RecordingPlan
from teho.store.layout import create_run_directory
from teho.store.read import read_run, run_state


class Node:
    """A recorder, and what it said."""

    def __init__(self, home: Path) -> None:
        step = Step(
            key="k", started_by="Slurm", began_on="n1", task_count=1, node_count=2,
            hosts=("n1", "n2"),
        )  # fmt: skip
        self.run = Run(
            format=1, id="20261121-100000-x-abcd", command=("x",), host="n1", step=step,
            started_at=datetime.now(timezone.utc), supervisor_pid=1, supervisor_stamp="1",
        )  # fmt: skip
        self.home = home
        self.process = subprocess.Popen(
            [*TEHO, "record-node"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SLURMD_NODENAME": "n2", "SLURM_JOB_ID": JOB, "SLURM_STEP_ID": "7"},
        )

    def order(self, directory: Path) -> None:
        plan = RecordingPlan(
            directory=str(directory), node="", period_s=0.1, started_s=0.0, node_count=2,
            started_at=self.run.started_at, job=JOB, mark=f"{JOB}.1",
        )  # fmt: skip
        orders = Orders(plan=plan, description=self.run, home=str(self.home), environment={})
        self.say(orders=msgspec.to_builtins(orders))

    def say(self, **message: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> dict:
        """Return its last word."""
        out, _ = self.process.communicate(timeout=30)
        assert self.process.returncode == 0
        return json.loads(out.splitlines()[-1])


@pytest.fixture
def node(home: Path) -> Iterator[Node]:
    node = Node(home)
    yield node
    node.process.kill()
    node.process.communicate()


@pytest.fixture
def directory(node: Node, home: Path) -> Path:
    return create_run_directory(home, node.run.id, msgspec.json.encode(node.run))


@pytest.fixture
def step() -> Iterator[subprocess.Popen[bytes]]:
    """A task of the job, which the recorder counts."""
    variables = {**os.environ, "SLURM_JOB_ID": JOB, "SLURM_STEP_ID": "0"}
    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=variables
    ) as task:
        yield task
        task.kill()


def test_it_records_until_it_is_ended(node: Node, directory: Path) -> None:
    node.order(directory)
    assert node.hear() == {"node": "n2", "place": str(directory), "shared": True}
    time.sleep(0.5)
    node.say(end=1.0)
    assert node.end() == {"node": "n2", "sealed": True}
    (found,) = read_run(directory).nodes
    assert (found.name, found.sealed, found.program_pid) == ("n2", True, None)
    assert found.allocation.job_id == JOB
    assert found.allocation.step_id is None


def test_without_orders_there_is_nothing_to_do(node: Node) -> None:
    out, _ = node.process.communicate(timeout=30)
    assert (node.process.returncode, out) == (0, "")


def test_if_the_recording_cannot_be_seen_it_keeps_a_part(
    node: Node, home: Path, tmp_path: Path
) -> None:
    node.order(tmp_path / "elsewhere" / node.run.id)
    place = home / "runs" / node.run.id
    assert node.hear() == {"node": "n2", "place": str(place), "shared": False}
    node.say(end=1.0)
    node.end()
    run = read_run(place)
    assert run.step == node.run.step
    assert [node.name for node in run.nodes] == ["n2"]
    assert run_state(run, place) is RunState.INTERRUPTED


def test_if_nothing_can_be_written_it_says_so(node: Node, home: Path, tmp_path: Path) -> None:
    home.write_text("a file in its place")
    node.order(tmp_path / "elsewhere")
    said = node.end()
    assert said["node"] == "n2"
    assert str(home) in said["trouble"]


def test_a_warning_is_the_jobs_end_once_the_job_has_left(
    node: Node, directory: Path, step: subprocess.Popen[bytes]
) -> None:
    """As SIGTERM before SIGKILL: a program that saves its work is recorded until it is done."""
    node.order(directory)
    node.hear()
    wait_for_rows(directory)
    node.process.send_signal(signal.SIGUSR1)  # the program's business
    node.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert node.is_alive()
    step.kill()
    step.wait()
    assert node.end() == {"node": "n2", "sealed": True}


def test_a_leader_that_is_gone_leaves_it_to_the_job(
    node: Node, directory: Path, step: subprocess.Popen[bytes]
) -> None:
    node.order(directory)
    node.hear()
    wait_for_rows(directory)
    assert node.process.stdin is not None
    node.process.stdin.close()
    time.sleep(1)
    assert node.is_alive()
    step.kill()
    step.wait()
    time.sleep(1)
    # The script may start another step.
    assert node.is_alive()
    node.process.send_signal(signal.SIGTERM)
    node.process.stdin = None
    assert node.end() == {"node": "n2", "sealed": True}


def wait_for_rows(directory: Path) -> None:
    deadline_s = time.monotonic() + 20
    while not list(directory.glob("live/*")):
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
