"""Jobs that were not started with Teho, on a real Slurm and Grid Engine after `teho always on`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from grid_engine_twin import PROGRAMS, GridEngineTwin
from recording_site import RecordingSite, recording_site

from support import TEHO, wait_for
from teho.model.run import Run, RunState
from teho.store.read import read_run, rows_of_node, run_state

SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1 --mem=1G
#SBATCH --output={output} --nodes={nodes} --ntasks-per-node=1
{lines}
"""
BURN = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"
BROKEN = {
    "full disk": "TEHO_HOME=/dev/full/home",
    "home is a file": "TEHO_HOME=/etc/passwd",
    "bad setting": "TEHO_EVERY=never",
    "other Python": "PYTHONHOME=/nowhere",
    "no tools": "PATH=/nowhere",
    "preload": "LD_PRELOAD=/nowhere.so",
    "refused": "TEHO_ALWAYS=off",
}


@pytest.fixture(scope="module")
def site(slurm: None) -> Iterator[RecordingSite]:
    with recording_site(2) as one:
        one.twin.environment |= {"HOME": str(one.folder), "SHELL": "/bin/bash"}
        (one.folder / ".profile").write_text(". ~/.bashrc\n")
        on = one.teho("always", "on")
        assert on.returncode == 0, on.stderr
        yield one


def submit(site: RecordingSite, lines: str, *, nodes: int = 1, variables: str = "") -> str:
    """Submit from a shell that has read `~/.bashrc`."""
    script = site.folder / "script.sh"
    script.write_text(SCRIPT.format(lines=lines, nodes=nodes, output=site.folder / "%j.out"))
    sent = site.twin.run(
        "bash", "-c", f". ~/.bashrc; {variables} sbatch --parsable {shlex.quote(str(script))}"
    )
    assert sent.returncode == 0, sent.stderr
    return sent.stdout.strip()


def runs_of(site: RecordingSite, job: str) -> list[tuple[Path, Run]]:
    found = [(path, read_run(path)) for path in site.home.glob("runs/[!.]*")]
    return [
        (path, run) for path, run in found
        if any(node.allocation.job_id == job for node in run.nodes)
    ]  # fmt: skip


def test_a_job_of_two_nodes_is_recorded(site: RecordingSite) -> None:
    job = submit(site, f"srun {BURN}; {BURN}; exit 3", nodes=2)
    site.wait(job)
    site.until(
        "the recording's end",
        lambda: any(
            run_state(run, path) is not RunState.RUNNING for path, run in runs_of(site, job)
        ),
    )
    [(path, run)] = runs_of(site, job)
    assert run.unasked
    assert [node.name for node in run.nodes] == ["gpu-n1", "gpu-n2"]
    used = [rows_of_node(path, node.name, "node", ["job_cpu_s"], []) for node in run.nodes]
    cpu_s = [rows.table["job_cpu_s"][-1].as_py() for rows in used if rows]
    assert cpu_s[0] >= 1.8
    assert cpu_s[1] >= 0.9
    shown = site.teho("report", job, "--format", "seff")
    assert "FAILED (exit code 3)" in shown.stdout
    end = read_run(path).end
    assert end is not None
    assert (end.exit_code, end.job_state) == (3, "failed")


def test_broken_jobs_run_as_ever(site: RecordingSite) -> None:
    lines = 'echo "hello $((6 * 7))"; cat /dev/null; exit 5'
    jobs = {what: submit(site, lines, variables=word) for what, word in BROKEN.items()}
    plain = site.send(
        SCRIPT.format(lines=lines, nodes=1, output=site.folder / "%j.out"), site.folder
    )
    for job in (plain, *jobs.values()):
        site.wait(job)
    expected = site.said(plain), ended(site, plain)
    assert expected[1] == "FAILED|5:0"
    said = {what: (site.said(job), ended(site, job)) for what, job in jobs.items()}
    said["no tools"] = said["no tools"][0].partition("\n")[0] + "\n", said["no tools"][1]
    said["preload"] = said["preload"][0].rpartition("\n")[0][-9:] + "\n", said["preload"][1]
    assert said == dict.fromkeys(BROKEN, expected)
    for what in ("full disk", "home is a file", "bad setting", "refused"):
        assert runs_of(site, jobs[what]) == []


def ended(site: RecordingSite, job: str) -> str:
    answer = site.twin.run("sacct", "-XnPj", job, "-o", "State,ExitCode")
    return answer.stdout.strip()


def test_a_job_of_grid_engine_is_recorded(arc4: GridEngineTwin, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    variables = {"HOME": str(home), "SHELL": "/bin/bash", "SGE_ROOT": str(arc4.root)}
    path = f"{PROGRAMS}:{os.environ['PATH']}"
    on = subprocess.run(
        [*TEHO, "always", "on"], env={**os.environ, **variables, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert on.returncode == 0, on.stderr
    script = home / "job.sh"
    script.write_text(
        f"#!/bin/bash\n#$ -l h_rt=0:15:0 -cwd -j y -o out -N plain\n{BURN}\necho ok\n"
    )
    # `qsub` also reads the file in the directory from which it is called.
    sent = arc4.ask(
        str(PROGRAMS / "qsub"), "-terse", "-sync", "y", str(script), cwd=home, patience_s=120
    )
    job = sent.stdout.split()[0]
    assert (home / "out").read_text() == "ok\n"
    runs = Path(os.environ["TEHO_HOME"]) / "runs"
    wait_for(lambda: [*runs.glob("*/samples/*.parquet")], 30)
    [directory] = runs.iterdir()
    run = read_run(directory)
    assert (run.unasked, run.command, run.nodes[0].allocation.job_id) == (True, ("plain",), job)
    rows = rows_of_node(directory, run.nodes[0].name, "node", ["job_cpu_s"], [])
    assert rows is not None
    assert rows.table["job_cpu_s"][-1].as_py() >= 0.9
    environment = {**arc4.environment, **variables}
    shown = arc4.ask(*TEHO, "report", job, "--format", "seff", environment=environment)
    assert "COMPLETED (exit code 0)" in shown.stdout, shown.stderr
