"""`teho run --job`: what is said where a job cannot be recorded from outside."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sacct_rows import job, rows, step

from support import TEHO, wait_for
from terminal import keys, screen, terminal


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for stand-ins of the scheduler's commands, beside nothing but a shell's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "printf"):
        (folder / name).symlink_to(
            f"/bin/{name}" if Path("/bin", name).exists() else f"/usr/bin/{name}"
        )
    return folder


def stand_in(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def squeue(programs: Path, state: str, nodes: str = "n1") -> None:
    row = "\\035" + "\\037".join(("7", state, str(os.getuid()), "me", nodes, "None", "x", "x.sh"))
    stand_in(programs, "squeue", f"printf '{row}\\n'")


def test_with_a_command_too(teho) -> None:
    both = teho("run", "--job", "7", "--", "true")
    assert both.returncode == 2
    assert "leave out COMMAND" in both.stderr
    neither = teho("run")
    assert neither.returncode == 2
    assert "Missing argument '-- COMMAND…'" in neither.stderr


@pytest.mark.parametrize("job", ["abc", "7.0", "-1", "7_", ""])
def test_no_jobs_number(teho, job: str) -> None:
    refused = teho("run", f"--job={job}")
    assert refused.returncode == 2
    assert "the number of a job" in refused.stderr


def test_without_slurm(teho, programs: Path) -> None:
    path = {"PATH": str(programs)}
    nothing = teho("run", "--job", "7", env=path)
    assert nothing.returncode == 2
    assert (
        "--job needs Slurm's command squeue, and this machine does not have it; expected a machine "
        "with the commands of Slurm" in nothing.stderr
    )
    stand_in(programs, "qstat", "exit 0")
    said = teho("run", "--job", "7", env=path).stderr
    assert "cannot record a running job of Grid Engine" in said


@pytest.mark.parametrize(
    ("state", "nodes", "words"),
    [
        ("PENDING", "", "job 7 has not started; expected a running job"),
        ("COMPLETED", "n1", "job 7 has ended (completed)"),
        ("TIMEOUT", "n1", "job 7 has ended (timed out)"),
    ],
)
def test_a_job_that_does_not_run(teho, programs: Path, state: str, nodes: str, words: str) -> None:
    squeue(programs, state, nodes)
    refused = teho("run", "--job", "7", env={"PATH": str(programs)})
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_step_that_slurm_refuses_leaves_nothing(teho, programs: Path, home: Path) -> None:
    squeue(programs, "RUNNING")
    stand_in(
        programs,
        "srun",
        '[ "$1" = --version ] && { echo slurm 22.05.8; exit; }\n'
        'echo "srun: error: Unable to create step for job 7: Access/permission denied" >&2\nexit 1',
    )
    refused = teho("run", "--job", "7", env={"PATH": str(programs)})
    assert refused.returncode == 2
    assert "job 7 was not recorded: no recorder started on n1: Unable to create" in refused.stderr
    assert list((home / "runs").iterdir()) == []


RUNNING = """<?xml version='1.0'?><job_info><queue_info><job_list state="running">
<JB_job_number>4711</JB_job_number><JB_name>train</JB_name><JB_owner>me</JB_owner><state>r</state>
<JAT_start_time>2026-11-20T13:46:18</JAT_start_time><queue_name>gpu.q@g3</queue_name>
<slots>4</slots></job_list></queue_info></job_info>"""


USED = "usage         1:            cpu=02:00:00, mem=9 GB s, io=0.5 GB, vmem=9G, maxvmem=9G"


def test_top_of_a_running_job_of_grid_engine_shows_what_qstat_reports(teho, programs: Path) -> None:
    began = datetime.now() - timedelta(hours=4)  # noqa: DTZ005 - qstat prints local times
    queue = RUNNING.replace("2026-11-20T13:46:18", f"{began:%Y-%m-%dT%H:%M:%S}")
    stand_in(
        programs, "qstat",
        f"[ \"$1\" = -j ] && {{ echo '{USED}'; exit; }}\ncat <<'END'\n{queue}\nEND",
    )  # fmt: skip
    stand_in(programs, "qacct", "echo 'error: job id not found' >&2; exit 1")
    path = {"PATH": str(programs)}
    shown = teho("top", "4711", env=path)
    assert shown.returncode == 0, shown.stderr
    text = " ".join(shown.stdout.split())
    for words in (
        "Job 4711 running on gpu.q@g3" if "gpu.q@g3" in text else "Job 4711 running on g3",
        "The figures show the use of cores until now.",
        "Figures from qstat ·",
        "Cores used 0.5",
        "not recorded: job 4711 runs on g3 without `teho run`, and Grid Engine cannot start",
    ):
        assert words in text, words
    document = json.loads(teho("top", "4711", "--once", "--format", "json", env=path).stdout)
    facts = {fact["key"]: fact["value"] for fact in document["facts"]}
    assert facts["source"] == "qstat"
    assert 0 <= facts["age_s"] < 60
    # The address space (vmem) is not the memory that the job uses.
    assert facts["memory_peak_bytes"]["type"] == "missing"
    assert "no run is recorded" in teho("top", "4712", env=path).stderr  # no such job


REFUSES = (
    '[ "$1" = --version ] && { echo slurm 22.05.8; exit; }\n'
    'echo "srun: error: Unable to create step for job 7: Access/permission denied" >&2\nexit 1'
)
SSTAT = "7.batch|1|10:00:00|3145728K|3145728K|cpu=10:00:00,gres/gpuutil=93|cpu=10:00:00,mem=3G"


def test_if_srun_refuses_top_shows_what_sstat_reports(teho, programs: Path, home: Path) -> None:
    squeue(programs, "RUNNING")
    stand_in(programs, "srun", REFUSES)
    running = {"State": "RUNNING", "End": "Unknown", "TotalCPU": "00:00:00"}
    batch = step("7.batch", peak="", AveRSS="", **running)
    (programs / "rows").write_text(rows(job("7", gpus=1, **running), batch))
    stand_in(programs, "sacct", f"cat '{programs}/rows'")
    stand_in(programs, "sstat", f"echo '{SSTAT}'")
    shown = teho("top", "7", "--format", "json", "--once", env={"PATH": str(programs)})
    assert shown.returncode == 0, shown.stderr
    document = json.loads(shown.stdout)
    facts = {fact["key"]: fact["value"] for fact in document["facts"]}
    assert facts["source"] == "sacct and sstat"
    assert facts["cores_used"] == pytest.approx(5.0)
    assert facts["memory_peak_bytes"] == 3 * 2**30
    assert facts["gpu_peak_percent"] == 93
    assert document["state"] == "running"
    assert "not recorded" in document["notes"][0]
    assert "Access/permission denied" in document["notes"][0]
    assert list((home / "runs").iterdir()) == []
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    with terminal(" ".join([*TEHO, "top", "7"]), 110, 24, environment) as tmux:
        wait_for(lambda: "sacct and sstat  asked " in screen(tmux))
        facts = "running · 2 h · 2 h until the time limit · not recorded:"
        wait_for(lambda: facts in screen(tmux))
        assert "GPU use                     93 %" in screen(tmux)
        keys(tmux, "Enter", "?")
        wait_for(lambda: "Open the selected node, GPU or process." in screen(tmux))
        keys(tmux, "q")


@pytest.mark.parametrize(
    "accounting", ["echo 'Slurm accounting storage is disabled' >&2; exit 1", "exit 0"]
)
def test_if_the_accounting_has_no_figures_either_the_error_is_that_of_srun(
    teho, programs: Path, accounting: str
) -> None:
    squeue(programs, "RUNNING")
    stand_in(programs, "srun", REFUSES)
    stand_in(programs, "sacct", accounting)
    shown = teho("top", "7", "--once", env={"PATH": str(programs)})
    assert shown.returncode == 2
    assert shown.stderr.startswith("teho: job 7 was not recorded: no recorder started on n1")
    assert "Access/permission denied. Next: in the job's script, use `teho run`" in shown.stderr
    assert shown.stderr.count("\n") == 1
