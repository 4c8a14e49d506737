"""Jobs of three nodes that one `teho run` records as a whole: in their script, and from outside."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import nvml_stub
import pytest
from recording_site import RecordingSite, recording_site

from support import TEHO
from teho.model.run import Run
from teho.store.read import read_run, rows_of_node
from terminal import keys, screen, terminal

NODES = ("gpu-n1", "gpu-n2", "gpu-n3")
SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1
#SBATCH --nodes={nodes} --ntasks-per-node=2 --mem=1G --output={output}
{lines}
"""
RUN = f"{sys.executable} -m teho run --every 200ms --quiet"
BURN = "python3 -c 'import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(2)'"
WAIT = "python3 -c 'import time; time.sleep(60)'"
LONG = "python3 -c 'import time; time.sleep(290)'"  # a slow machine needs minutes for the keys
# The first step holds all that the job has, and starts beside the recorders at once. The second may
# have to wait until Slurm has cleaned up after the first.
FIRST_OVER = "the first step is over"
STEPS = (
    f"srun --exclusive {RUN} -- {BURN}; echo {FIRST_OVER}; srun --nodes=1 --ntasks=1 true; exit 5"
)
ONE_STEP = "srun --exact --nodes=1 --ntasks=1 --mem=100 --gres=none --nodelist"
LINES = {
    "steps": f'{RUN} -- bash -c "{STEPS}"; echo code $?',
    "siblings": f"{RUN} -- {ONE_STEP}=gpu-n1 {BURN} & {RUN} -- {ONE_STEP}=gpu-n2 {BURN} & wait",
    "one node": f"{RUN} -- srun {BURN}",
    "killed": f"{RUN} -- sleep 12",
    "cancelled": f"{RUN} -- srun {WAIT}",
    "from outside": "srun sleep 2; srun sh -c 'sleep 35; exit 3'",
}


class Site(RecordingSite):
    """The twin, with jobs of one recording."""

    def submit(self, lines: str, *, nodes: int = 3) -> str:
        script = SCRIPT.format(lines=lines, nodes=nodes, output=self.folder / "%j.out")
        return self.send(script, self.folder)

    def runs(self, job: str) -> list[Path]:
        """Return what was recorded of a job, oldest first."""
        found = sorted(self.home.glob("runs/[!.]*"))
        return [path for path in found if any(_is_of(path, job, node) for node in _nodes(path))]

    def only_run(self, job: str) -> tuple[Path, Run]:
        runs = self.runs(job)
        assert len(runs) == 1, self.said(job)
        return runs[0], read_run(runs[0])

    def records(self, job: str, nodes: int = 3) -> bool:
        """Tell whether so many nodes of a job have rows on the disk."""
        return any(len(list((run / "live").iterdir())) == nodes for run in self.runs(job))

    def kill(self, job: str, *marks: str) -> None:
        """Kill those of a job's recorders, or of what starts them, in which all these stand."""
        found = processes(f"TEHO_RECORDER={job}\0", *marks)
        assert found
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes(*marks: str) -> list[int]:
    """Return the processes in whose environment or command all these stand."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if all(mark.encode() in text for mark in marks):
            found.append(int(folder.name))
    return found


def _nodes(run: Path) -> list[Path]:
    return list((run / "nodes").glob("*.json"))


def _is_of(run: Path, job: str, node: Path) -> bool:
    return msgspec.json.decode(node.read_bytes())["allocation"].get("job_id") == job


@pytest.fixture(scope="module")
def site(slurm: None) -> Iterator[Site]:
    with recording_site(3, apart=True) as started:
        yield Site(started.twin, started.folder)


@pytest.fixture(scope="module")
def jobs(site: Site) -> dict[str, str]:
    """Submit the jobs that leave each other alone, and return their numbers."""
    nodes = {"siblings": 2, "one node": 1}
    return {name: site.submit(lines, nodes=nodes.get(name, 3)) for name, lines in LINES.items()}


def cpu_s(directory: Path, node: str) -> float:
    rows = rows_of_node(directory, node, "node", ["job_cpu_s"], [])
    assert rows is not None
    return max(filter(None, rows.table["job_cpu_s"].to_pylist()), default=0.0)


def test_a_recorder_and_then_their_srun_are_killed(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["killed"]
    site.until("rows of all nodes", lambda: site.records(job))
    site.kill(job, "record-node", "SLURMD_NODENAME=gpu-n2")
    time.sleep(1)
    site.kill(job, "srun\0--jobid")
    site.wait(job)
    _, run = site.only_run(job)
    assert run.end is not None
    assert run.end.exit_code == 0
    assert [node.sealed for node in run.nodes][:2] == [True, False]
    assert any("gpu-n2" in trouble.what for trouble in run.troubles), run.troubles


def test_a_cancelled_job(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["cancelled"]
    site.until("rows of all nodes", lambda: site.records(job))
    site.twin.run("scancel", job)
    site.wait(job)
    directory, run = site.only_run(job)
    assert run.end is not None
    # On the first node, Slurm kills what is left as soon as the batch script has ended. On a slow
    # machine, that is before the recorder has sealed its file; its rows are there all the same.
    assert [node.sealed for node in run.nodes][1:] == [True] * 2
    for node in run.nodes:
        rows = rows_of_node(directory, node.name, "node", ["job_cpu_s"], [])
        assert rows is not None
        assert len(rows.table) > 0
    assert (run.end.signal, run.end.exit_code) != (None, 0)


def test_a_recording_from_outside_ends_and_the_job_continues(
    site: Site, jobs: dict[str, str]
) -> None:
    job = jobs["from outside"]
    site.until("its start", lambda: "RUNNING" in site.state(job))
    attached = subprocess.Popen(
        [*TEHO, "run", "--every", "200ms", "--job", job],
        env={**os.environ, **site.twin.environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    site.until("rows of all nodes", lambda: site.records(job))
    time.sleep(1)
    attached.send_signal(signal.SIGINT)
    _, said = attached.communicate(timeout=60)
    assert attached.returncode == 0, said
    assert f"job {job} on 3 nodes" in said
    assert "the job was still running" in said
    assert "RUNNING" in site.state(job)
    _, run = site.only_run(job)
    assert run.end is not None
    assert (run.end.exit_code, run.end.signal, run.end.job_state) == (None, None, "running")
    assert all(node.sealed for node in run.nodes)
    assert {node.allocation.cluster for node in run.nodes} == {"puhti"}


def until_limit_s(document: dict[str, Any]) -> Any:
    facts = {fact["key"]: fact["value"] for fact in document["facts"]}
    return facts.get("until_limit_s")


def test_top_records_a_job_that_is_not_recorded_while_it_shows_it(
    site: Site, jobs: dict[str, str]
) -> None:
    job = jobs["from outside"]
    site.until("its start", lambda: "RUNNING" in site.state(job))
    shown = site.teho("top", job, "--format", "json", "--once")
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    assert document["state"] == "running"
    assert {row["node"] for row in document["tables"][-1]["rows"]} == set(NODES)
    # Before Slurm 23.02, no variable has the time limit: squeue is asked.
    assert 60 < until_limit_s(document) <= 300
    assert "RUNNING" in site.state(job)
    run = read_run(site.runs(job)[-1])
    assert run.id in shown.stderr
    assert run.end is not None
    assert run.end.job_state == "running"
    environment = {**os.environ, **site.twin.environment, "TERM": "xterm-256color"}
    with terminal(" ".join([*TEHO, "top", job]), 110, 30, environment) as tmux:
        site.until("all nodes", lambda: all(f" {name} " in screen(tmux) for name in NODES))
        keys(tmux, "s")  # by name
        site.until("the order", lambda: "sort: name" in screen(tmux))
        keys(tmux, "Home", "Down", "Enter")
        site.until("a node", lambda: "node gpu-n" in screen(tmux))
        keys(tmux, "q")
        site.until("the end", lambda: "has ended: `teho report" in screen(tmux))
    assert "RUNNING" in site.state(job)
    unknown = site.teho("top", "999999", "--once")
    assert unknown.returncode == 2
    assert "999999" in unknown.stderr


def test_a_job_is_recorded_from_outside_until_it_ends(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["from outside"]
    attached = site.teho("run", "--every", "200ms", "--job", job)
    assert attached.returncode == 0, attached.stderr
    assert "exit code 3" in attached.stderr
    run = read_run(site.runs(job)[-1])
    assert run.end is not None
    assert (run.end.exit_code, run.end.job_state) == (3, "failed")
    assert all(node.sealed for node in run.nodes)
    ended = site.teho("run", "--job", job)
    assert ended.returncode == 2
    # For a while, Slurm is still cleaning up.
    assert re.search(rf"job {job} has ended \((failed|completing)\)", ended.stderr)


def test_a_recorded_job_of_two_nodes_is_watched_in_a_terminal(
    site: Site, nvml_library: Path
) -> None:
    variables = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / "v100x4.txt")
    exports = "; ".join(f"export {name}={value}" for name, value in variables.items())
    job = site.submit(f"{exports}; {RUN} -- srun {LONG}", nodes=2)
    site.until("rows of both nodes", lambda: site.records(job, 2))
    nodes = sorted(path.stem for path in _nodes(site.runs(job)[0]))
    environment = {**os.environ, **site.twin.environment, "TERM": "xterm-256color"}
    with terminal(" ".join([*TEHO, "top", job]), 120, 40, environment) as tmux:

        def line_of(name: str) -> str:
            return next((one for one in screen(tmux).splitlines() if name in one), "")

        def until(what: str, pattern: str) -> str:
            end_s = time.monotonic() + 60
            while not re.search(pattern, seen := screen(tmux)):
                assert time.monotonic() < end_s, f"{what}:\n{seen}"
                time.sleep(0.1)
            return seen

        for name in nodes:  # a cell for the GPU, its memory and power, cores, memory, and the age
            values = rf"{name} +[79] +\d+ % +\d+ W +\S+ % +\S+ MiB.* now$"
            site.until(name, lambda: re.search(values, line_of(name)), 60)  # noqa: B023
        until("the verdict", r"(?m)^[✗!i✓?] .*2 GPUs .* % of the time")
        # The verdict may fill two lines.
        until("the time limit", r"(?m)^running · .* · \d min .*until the time limit")
        until("the job", rf"\bjob {job}\b")
        keys(tmux, "s", "Home", "Enter")
        seen = until("a node", rf"node {nodes[0]}  \d+ s old")
        assert re.search(r"▶ +0  ━+.* % .* \d+/300 W .* MHz ", seen)
        assert re.search(r"Model +Tesla V100", seen)
        assert "Network in" in seen
        until("its processes", r"time\.sleep\(290\)")
        keys(tmux, "Enter")
        until("a GPU", rf"GPU 0 of {nodes[0]}  Tesla V100")
        seen = until("curves, which need two samples", r"[⠁-⣿]")
        assert re.search(r"GPU power +\d+ W of 300 W", seen)
        keys(tmux, "Escape")
        until("the node again", rf"node {nodes[0]} ")
        keys(tmux, "End", "Enter")
        seen = until("a process", rf"process \d+ on {nodes[0]}")
        assert "of one core" in seen
        keys(tmux, "q")
        site.until("the end", lambda: "of one core" not in screen(tmux), 60)
    assert "RUNNING" in site.state(job)
    site.until("no lease", lambda: not list((site.runs(job)[0] / "leases").iterdir()), 30)
    site.twin.run("scancel", job)
    site.wait(job)


def test_the_steps_of_a_script_are_one_recording(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["steps"]
    site.wait(job)
    directory, run = site.only_run(job)
    assert f"{FIRST_OVER}\n" in site.said(job)
    assert "code 5" in site.said(job)
    first, _, _ = site.said(job).partition(FIRST_OVER)
    assert "temporarily disabled" not in first
    assert run.end is not None
    assert run.end.exit_code == 5
    assert run.step is not None
    assert (run.step.hosts, run.step.task_count, run.step.began_on) == (NODES, 1, NODES[0])
    assert run.step.key.startswith(f"slurm-puhti-{job}.batch-")
    assert [node.name for node in run.nodes] == list(NODES)
    assert all(node.sealed for node in run.nodes), run
    assert [node.clock is None for node in run.nodes] == [True, False, False]
    assert {node.allocation.job_id for node in run.nodes} == {job}
    assert {node.allocation.cluster for node in run.nodes} == {"puhti"}
    # Two tasks of 0.5 s on each node, with their interpreters.
    assert all(0.9 < cpu_s(directory, name) < 3 for name in NODES)
    assert run.troubles == ()


def test_two_recordings_of_one_script_count_their_own(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["siblings"]
    site.wait(job)
    runs = site.runs(job)
    assert len(runs) == 2, site.said(job)
    used = sorted([cpu_s(run, "gpu-n1") > 0.4, cpu_s(run, "gpu-n2") > 0.4] for run in runs)
    assert used == [[False, True], [True, False]], site.said(job)


def test_the_tasks_of_a_job_of_one_node(site: Site, jobs: dict[str, str]) -> None:
    job = jobs["one node"]
    site.wait(job)
    directory, run = site.only_run(job)
    assert run.step is None
    assert 0.9 < cpu_s(directory, run.nodes[0].name) < 3


def test_a_shell_with_nodes_from_elsewhere(site: Site) -> None:
    """As `salloc` on a login node: the program's own machine is none of the job's."""
    ran = site.twin.run(
        "salloc", "--quiet", "--partition=gpu", "--account=project_2001234", "--time=5",
        "--gres=gpu:v100:1", "--nodes=2", "--ntasks=2", *RUN.split(), "--", "srun", "sleep", "3",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    run = read_run(max(site.home.glob("runs/*-srun-*")))
    assert run.step is not None
    assert tuple(node.name for node in run.nodes) == run.step.hosts
    assert all(node.sealed for node in run.nodes)
    assert run.end is not None
    assert run.end.exit_code == 0


def test_a_node_that_does_not_see_the_recording(site: Site) -> None:
    # A memory file system of the first node's own lies over the home.
    keep = site.folder / "kept"
    job = site.submit(
        f"mkdir -p {site.home}; mount -t tmpfs none {site.home}\n{RUN} -- srun {BURN}\n"
        f"cp -a {site.home}/runs {keep}; umount {site.home}",
        nodes=2,
    )
    site.wait(job)
    (first,) = keep.iterdir()
    (second,) = site.runs(job)
    one, other = read_run(first), read_run(second)
    assert [node.name for node in one.nodes] == ["gpu-n1"]
    assert [node.name for node in other.nodes] == ["gpu-n2"]
    assert any(f"gpu-n2:{second}" in trouble.what for trouble in one.troubles)
    merged = site.teho("merge", str(first), str(second))
    assert merged.returncode == 0, merged.stderr
    whole = read_run(site.home / "runs" / merged.stdout.strip())
    assert [node.name for node in whole.nodes] == ["gpu-n1", "gpu-n2"]
    assert whole.end == one.end
    assert cpu_s(site.home / "runs" / whole.id, "gpu-n2") > 0.9


def test_a_node_that_cannot_write(site: Site) -> None:
    read_only = f"mount --bind {site.home} {site.home}; mount -o remount,ro,bind {site.home}"
    on_second = "srun --nodes=1 --ntasks=1 --nodelist=gpu-n2"
    job = site.submit(
        f"{on_second} sh -c '{read_only}'\n{RUN} -- sleep 3\n{on_second} umount {site.home}",
        nodes=2,
    )
    site.wait(job)
    _, run = site.only_run(job)
    assert run.end is not None
    assert run.end.exit_code == 0
    assert [node.name for node in run.nodes] == ["gpu-n1"]
    assert any(
        "gpu-n2" in trouble.what and "Read-only" in trouble.what for trouble in run.troubles
    ), run.troubles


def test_a_node_that_does_not_answer(site: Site) -> None:
    # The last test: the node does not come back.
    job = site.submit(f"sleep 4; {RUN} -- sleep 15")
    site.until("its start", lambda: "RUNNING" in site.state(job))
    for pid in processes(f"SLURM_CONF={site.twin.conf}\0", "slurmd\0-D\0-N\0gpu-n3\0"):
        os.kill(pid, signal.SIGKILL)
    site.until("its end", lambda: site.runs(job) and site.only_run(job)[1].end is not None)
    _, run = site.only_run(job)
    assert run.end is not None
    assert run.end.exit_code == 0
    assert [node.name for node in run.nodes] == ["gpu-n1", "gpu-n2"]
    assert any("no recorder started on gpu-n3" in trouble.what for trouble in run.troubles)
