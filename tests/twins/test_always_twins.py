"""Jobs that were not started with Teho, on a real Slurm and Grid Engine after `teho always on`."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from grid_engine_twin import PROGRAMS, GridEngineTwin, started, why_not
from recording_site import RecordingSite, recording_site
from small_disk import fill, small_disk

from support import TEHO, wait_for
from teho.clusters.catalogue import load_cluster
from teho.model.run import Run, RunState
from teho.store.read import read_run, rows_of_node, run_state

SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1 --mem=1G
#SBATCH --output={output} --nodes={nodes} --ntasks-per-node=1
{lines}
"""
SBATCH = shutil.which("sbatch")
# The job ends the recorder, so what is used after the last sample is missing: several samples of
# 200 ms come after the work.
BURN = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.5: pass\ntime.sleep(1.5)'"
BROKEN = {
    "full disk": "TEHO_HOME={full}/home",
    "no path": "TEHO_HOME=/dev/full/home",
    "home is a file": "TEHO_HOME=/etc/passwd",
    "bad setting": "TEHO_EVERY=never",
    "other Python": "PYTHONHOME=/nowhere",
    "no tools": "PATH=/nowhere",
    "preload": "LD_PRELOAD=/nowhere.so",
    "refused": "TEHO_ALWAYS=off",
}


@pytest.fixture(scope="module")
def full(slurm: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount a full file system, before the nodes start: a node sees no later mount."""
    folder = tmp_path_factory.mktemp("full")
    with small_disk(folder, 1):
        fill(folder)
        yield folder


@pytest.fixture(scope="module")
def site(full: Path) -> Iterator[RecordingSite]:
    with recording_site(2, apart=True) as one:
        shell = {"HOME": str(one.folder), "SHELL": "/bin/bash", "TEHO_EVERY": "200ms"}
        one.twin.environment.update(shell)
        (one.folder / ".profile").write_text(". ~/.bashrc\n")
        on = one.teho("always", "on")
        assert on.returncode == 0, on.stderr
        yield one


@pytest.fixture(scope="module")
def login_shells() -> Iterator[GridEngineTwin]:
    """Run a Grid Engine whose queues start login shells, and that has no commands of Slurm."""
    if reason := why_not():
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="home-") as place,
        started(load_cluster("arc4", {}), root_home=Path(place)) as twin,
    ):
        tools = Path(place) / "tools"
        tools.mkdir()
        (tools / "qconf").symlink_to(PROGRAMS / "qconf")
        for queue in twin.ask("qconf", "-sql").stdout.split():
            row = ("shell_start_mode", "posix_compliant", queue)
            assert twin.ask("qconf", "-mattr", "queue", *row).returncode == 0
        yield twin


def submit(site: RecordingSite, lines: str, *, nodes: int = 1, variables: str = "") -> str:
    """Submit from a shell that has read `~/.bashrc`."""
    script = site.folder / "script.sh"
    script.write_text(SCRIPT.format(lines=lines, nodes=nodes, output=site.folder / "%j.out"))
    sent = site.twin.run(
        "bash", "-c", f". ~/.bashrc; {variables} {SBATCH} --parsable {shlex.quote(str(script))}"
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
    assert run.is_automatic
    assert [node.name for node in run.nodes] == ["gpu-n1", "gpu-n2"]
    used = [rows_of_node(path, node.name, "node", ["job_cpu_s"], []) for node in run.nodes]
    cpu_s = [rows.table["job_cpu_s"][-1].as_py() for rows in used if rows]
    assert 0.9 <= cpu_s[0] <= 2.2
    assert 0.4 <= cpu_s[1] <= 1.5
    shown = site.teho("report", job, "--format", "seff")
    assert "State: FAILED" in shown.stdout
    end = read_run(path).end
    assert end is not None
    assert (end.exit_code, end.job_state) == (3, "failed")


def test_broken_jobs_run_as_ever(site: RecordingSite, full: Path) -> None:
    lines = 'echo "hello $((6 * 7))"; cat /dev/null; exit 5'
    jobs = {
        what: submit(site, lines, variables=word.format(full=full)) for what, word in BROKEN.items()
    }
    plain = site.send(
        SCRIPT.format(lines=lines, nodes=1, output=site.folder / "%j.out"), site.folder
    )
    for job in (plain, *jobs.values()):
        site.wait(job)
    expected = site.said(plain), ended(site, plain)
    assert expected[1] == "FAILED|5:0"
    said = {what: (site.said(job), ended(site, job)) for what, job in jobs.items()}
    # These two make bash itself print something.
    for what in ("no tools", "preload"):
        lines = said[what][0].splitlines(keepends=True)
        kept = [line for line in lines if "cat: " not in line and "ld.so" not in line]
        said[what] = "".join(kept), said[what][1]
    assert said == dict.fromkeys(BROKEN, expected)
    for what in ("full disk", "no path", "home is a file", "bad setting", "refused"):
        assert runs_of(site, jobs[what]) == []
    assert not [*full.glob("home/runs/*")]


def ended(site: RecordingSite, job: str) -> str:
    answer = site.twin.run("sacct", "-XnPj", job, "-o", "State,ExitCode")
    return answer.stdout.strip()


def test_a_job_of_grid_engine_is_recorded(arc4: GridEngineTwin, tmp_path: Path) -> None:
    """An administrator has made the program the prolog of all queues."""
    folder, home = arc4.home, tmp_path / "home"
    prolog = folder / "prolog"
    prolog.write_text(arc4.ask(*TEHO, "always", "script").stdout)
    prolog.chmod(0o755)
    for queue in arc4.ask("qconf", "-sql").stdout.split():
        arc4.ask("qconf", "-mattr", "queue", "prolog", str(prolog), queue)
    script = folder / "job.sh"
    options = f"-l h_rt=0:15:0 -cwd -j y -o out -N plain -v TEHO_HOME={home},TEHO_EVERY=200ms"
    script.write_text(f"#!/bin/sh\n#$ {options}\n{BURN}\necho ok\n")
    sent = arc4.ask(str(PROGRAMS / "qsub"), "-terse", "-sync", "y", str(script), patience_s=120)
    job = sent.stdout.split()[0]
    assert (folder / "out").read_text() == "ok\n"
    wait_for(lambda: [*home.glob("runs/*/samples/*.parquet")])
    [directory] = (home / "runs").iterdir()
    run = read_run(directory)
    assert (run.is_automatic, run.command, run.nodes[0].allocation.job_id) == (
        True,
        ("plain",),
        job,
    )
    rows = rows_of_node(directory, run.nodes[0].name, "node", ["job_cpu_s"], [])
    assert rows is not None
    assert rows.table["job_cpu_s"][-1].as_py() >= 0.4
    shown = arc4.ask(*TEHO, "report", job, "--format", "seff")
    assert "State: COMPLETED" in shown.stdout, shown.stderr


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_a_user_of_grid_engine_records_without_an_administrator(
    login_shells: GridEngineTwin, shell: str
) -> None:
    """The queues start login shells, as Grid Engine's own defaults say."""
    twin, place = login_shells, login_shells.root_home
    assert place is not None
    tools, home = place / "tools", place / "recordings"
    shutil.rmtree(home, ignore_errors=True)
    user = {
        "HOME": str(place), "XDG_CONFIG_HOME": str(place), "TEHO_HOME": str(home),
        "PATH": str(tools), "TEHO_EVERY": "200ms",
    }  # fmt: skip
    on = twin.ask(*TEHO, "always", "on", environment=user)
    assert on.returncode == 0, on.stderr
    assert on.stdout.startswith("✓ On: every Grid Engine job"), on.stdout
    script, output = place / "job.sh", place / f"out-{Path(shell).name}"
    options = f"-S {shell} -l h_rt=0:15:0 -wd {place} -j y -o {output} -N login"
    script.write_text(f'#$ {options} -v TEHO_EVERY=200ms\necho "$?"\n{BURN}\nexit 6\n')
    sent = twin.ask(str(PROGRAMS / "qsub"), "-terse", "-sync", "y", str(script), patience_s=120)
    job = sent.stdout.split()[0]
    assert output.read_text() == "0\n"
    wait_for(lambda: [*home.glob("runs/*/samples/*.parquet")])
    [directory] = (home / "runs").iterdir()
    run = read_run(directory)
    assert run.is_automatic
    assert (run.command, run.nodes[0].allocation.job_id) == (("login",), job)
    rows = rows_of_node(directory, run.nodes[0].name, "node", ["job_cpu_s"], [])
    assert rows is not None
    assert rows.table["job_cpu_s"][-1].as_py() >= 0.4
    shown = twin.ask(*TEHO, "report", job, "--format", "seff", environment={"TEHO_HOME": str(home)})
    assert "State: FAILED (exit code 6)" in shown.stdout, shown.stderr
    off = twin.ask(*TEHO, "always", "off", environment=user)
    assert off.returncode == 0, off.stderr
    assert not (place / ".profile").exists()


def test_a_task_prolog_records_what_bash_does_not_start(site: RecordingSite) -> None:
    """An administrator has made the program the `TaskProlog`: the script of sh is recorded too."""
    prolog = site.folder / "prolog"
    prolog.write_text(site.teho("always", "script").stdout)
    prolog.chmod(0o755)
    with site.twin.conf.open("a") as file:
        file.write(f"TaskProlog={prolog}\n")
    reconfigured = site.twin.run("scontrol", "reconfigure")
    assert reconfigured.returncode == 0, reconfigured.stderr
    script = SCRIPT.format(
        lines=f"srun {BURN}; echo $?", nodes=1, output=site.folder / "%j.out"
    ).replace("/bin/bash", "/bin/sh")
    job = site.send(script, site.folder)
    site.wait(job)
    assert site.said(job) == "0\n"
    site.until("the recording", lambda: any(node.sealed for _, run in runs_of(site, job)
                                            for node in run.nodes))  # fmt: skip
    [(_, run)] = runs_of(site, job)
    assert run.is_automatic
