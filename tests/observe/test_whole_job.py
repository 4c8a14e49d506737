"""A job's script that is recorded on all nodes, with a stand-in for srun on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from step_tasks import JOB, only_run
from support import TEHO
from teho.model.run import Run, RunState
from teho.store.read import read_run, rows_of_node, run_state

RUN = [*TEHO, "run", "--every", "100ms", "--"]
# It answers as srun does, and starts its command once for each node, all here.
SRUN = f"""\
#!{sys.executable}
import os, subprocess, sys
if sys.argv[1:] == ["--version"]:
    print(os.environ.get("STUB_VERSION", "slurm 22.05.8"))
    sys.exit()
options = [word for word in sys.argv[1:] if word.startswith("--")]
command = sys.argv[1 + len(options):]
given = dict(word.partition("=")[::2] for word in options)
assert "--overlap" in given and "SLURM_NTASKS" not in os.environ
nodes = given["--nodelist"].split(",")
assert given["--nodes"] == given["--ntasks"] == str(len(nodes))
dead = os.environ.get("STUB_DEAD")
if dead in nodes:
    print(f"srun: error: Task launch for StepId=1.0 failed on node {{dead}}: no", file=sys.stderr)
    print("srun: error: Application launch failed: no", file=sys.stderr)
    sys.exit(1)
print("srun: cluster configuration lacks support for cpu binding", file=sys.stderr)
tasks = []
for node in nodes:
    own = {{"SLURM_JOB_ID": given["--jobid"], "SLURM_STEP_ID": "9", "SLURMD_NODENAME": node}}
    tasks.append(subprocess.Popen(command, env={{**os.environ, **own}}, stdin=subprocess.PIPE))
for line in sys.stdin.buffer:
    for task in tasks:
        task.stdin.write(line)
        task.stdin.flush()
for task in tasks:
    task.stdin.close()
for task in tasks:
    task.wait()
"""
# It begins when all recorders have, and gives them time to see what it took, also on a loaded
# machine. The CPU time of its start counts too.
BURN = """\
import os, pathlib, time
run = pathlib.Path(os.environ['TEHO_HOME'], 'runs')
while len(list(run.glob('*/live/*'))) < 3: time.sleep(0.1)
while time.process_time() < 0.7: pass
time.sleep(3)"""


@pytest.fixture
def job(tmp_path: Path, home: Path) -> dict[str, str]:
    """The environment of the script of a job of three nodes, of which this is the first."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "SLURM_JOB_ID": JOB,
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURMD_NODENAME": "n1",
        "SLURM_CLUSTER_NAME": "test",
        "SLURM_NTASKS": "24",
        "TEHO_REPORT": "none",
    }


def run(
    job: dict[str, str], *command: str, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *command], env={**job, **variables}, input=stdin, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def recorded(home: Path) -> Run:
    return read_run(only_run(home))


def troubles(home: Path) -> str:
    return " | ".join(trouble.what for trouble in recorded(home).troubles)


def cpu_s(home: Path, node: str) -> float:
    rows = rows_of_node(only_run(home), node, "node", ["job_cpu_s"], [])
    assert rows is not None
    return max(filter(None, rows.table["job_cpu_s"].to_pylist()), default=0.0)


def test_all_nodes_are_in_one_recording(job: dict[str, str], home: Path) -> None:
    done = run(
        job, "sh", "-c", "cat; exec sleep 2", stdin="what the program reads\n", TEHO_REPORT="brief"
    )
    assert (done.returncode, done.stdout) == (0, "what the program reads\n")
    found = recorded(home)
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3"]
    assert all(node.sealed for node in found.nodes)
    assert found.step is not None
    assert (found.step.task_count, found.step.node_count) == (1, 3)
    assert found.end is not None
    assert found.end.exit_code == 0
    assert run_state(found, only_run(home)) is RunState.FINISHED
    assert found.troubles == ()
    assert [node.program_pid is None for node in found.nodes] == [False, True, True]
    # The step that records is none of the job's own.
    assert {node.allocation.step_id for node in found.nodes} == {None}
    assert "Nodes 3" in done.stderr


def test_a_step_is_counted_on_every_node(job: dict[str, str], home: Path) -> None:
    step = f'SLURM_STEP_ID=0 SLURM_PROCID=0 "{sys.executable}" -c "{BURN}"'
    assert run(job, "sh", "-c", step).returncode == 0
    # On this one machine every node sees every process.
    assert all(cpu_s(home, node) == pytest.approx(0.75, abs=0.3) for node in ("n1", "n2", "n3"))


def test_another_recordings_steps_do_not_count(job: dict[str, str], home: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", BURN],
        env={**job, "SLURM_STEP_ID": "0", "TEHO_RECORDED_JOB": f"{JOB}.1"},
    )
    assert run(job, "sleep", "2").returncode == 0
    other.wait(30)
    assert cpu_s(home, "n2") < 0.1


def test_in_a_recorded_job_teho_run_only_runs_its_command(job: dict[str, str], home: Path) -> None:
    inner = f"SLURM_STEP_ID=0 SLURM_PROCID=0 {' '.join(RUN)}"
    done = run(job, "sh", "-c", f"{inner} sh -c 'echo $PPID $$ >&2; exit 3'")
    assert done.returncode == 3
    only_run(home)
    missing = run(job, "sh", "-c", f"{inner} /no/such/program")
    assert missing.returncode == 127
    assert "/no/such/program: command not found" in missing.stderr


def test_a_teho_run_in_the_script_of_a_recorded_job_records_what_it_starts(
    job: dict[str, str], home: Path
) -> None:
    assert run(job, *RUN, "true").returncode == 0
    nodes = sorted(len(list(path.glob("nodes/*"))) for path in (home / "runs").iterdir())
    assert nodes == [1, 3]


def test_a_job_within_a_recorded_job_is_a_job_of_its_own(job: dict[str, str], home: Path) -> None:
    """Such as one that a recorded script submits, which inherits its variables."""
    assert run(job, "sleep", "1", TEHO_RECORDED_JOB="4710.1").returncode == 0
    assert len(recorded(home).nodes) == 3


def test_ctrl_c_ends_the_program_and_the_recording_is_whole(
    job: dict[str, str], home: Path
) -> None:
    process = subprocess.Popen(
        [*RUN, "sleep", "30"], env=job, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline_s = time.monotonic() + 30
    while len(list(home.glob("runs/*/live/*"))) < 3 and time.monotonic() < deadline_s:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    found = recorded(home)
    assert found.end is not None
    assert found.end.signal == signal.SIGINT
    assert [node.sealed for node in found.nodes] == [True] * 3


def test_a_node_that_cannot_be_reached_is_named_and_the_others_are_recorded(
    job: dict[str, str], home: Path
) -> None:
    assert run(job, "sleep", "3", STUB_DEAD="n2").returncode == 0
    assert [node.name for node in recorded(home).nodes] == ["n1", "n3"]
    assert "no recorder started on n2: Task launch" in troubles(home)


def test_a_slurm_that_only_shares_cores_gets_no_steps(job: dict[str, str], home: Path) -> None:
    assert run(job, "sleep", "1", STUB_VERSION="slurm 21.08.5").returncode == 0
    assert [node.name for node in recorded(home).nodes] == ["n1"]
    assert "n2, n3: with --overlap, slurm 21.08.5 shares only cores" in troubles(home)


def test_without_srun_this_node_is_recorded(job: dict[str, str], home: Path) -> None:
    without = {**job, "PATH": os.environ["PATH"], "TEHO_REPORT": "brief"}
    done = run(without, "sleep", "1")
    assert done.returncode == 0
    assert [node.name for node in recorded(home).nodes] == ["n1"]
    assert "no recorder started on n2, n3" in troubles(home)
    assert "n2 and n3 left no recording" in done.stderr


def test_an_unreadable_list_of_nodes_costs_only_the_other_nodes(
    job: dict[str, str], home: Path
) -> None:
    assert run(job, "true", SLURM_JOB_NODELIST="n[1-").returncode == 0
    assert len(recorded(home).nodes) == 1
    assert "only this node is recorded: a host list" in troubles(home)


def test_a_job_of_only_this_node_is_no_step(job: dict[str, str], home: Path) -> None:
    assert run(job, "sleep", "0.5", SLURM_JOB_NODELIST="n1").returncode == 0
    found = recorded(home)
    assert found.step is None
    assert [node.name for node in found.nodes] == ["n1"]


def test_the_other_nodes_of_a_grid_engine_job_are_named(home: Path, tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("a.site 2 q@a <NULL>\nb.site 2 q@b <NULL>\n")
    job = {"JOB_ID": "7", "SGE_TASK_ID": "undefined", "PE_HOSTFILE": str(hosts), "HOSTNAME": "a"}
    assert run({**os.environ, **job}, "true").returncode == 0
    (node,) = recorded(home).nodes
    assert any("2 nodes, a.site,b.site, but only" in note for note in node.notes)


def test_a_shell_on_none_of_the_jobs_nodes(job: dict[str, str], home: Path) -> None:
    elsewhere = {name: value for name, value in job.items() if name != "SLURMD_NODENAME"}
    assert run(elsewhere, "sleep", "2").returncode == 0
    found = recorded(home)
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3"]
    assert found.step is not None
    assert found.step.began_on == "n1"
    assert found.end is not None
