"""Run jobs of a real Slurm after `teho always on`, with something broken: no job may change.

python benchmarks/always_jobs.py                 100 jobs for each breakage
python benchmarks/always_jobs.py --jobs 10
python benchmarks/always_jobs.py --grid-engine   on a real Grid Engine that starts login shells

It needs what the tests on twins need: Debian's Slurm or Grid Engine, and root. The output and the
exit code of each job are compared with a job without Teho.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common import ROOT, say

sys.path[:0] = [str(ROOT / "tests" / "twins"), str(ROOT / "tests")]

# The path above leads to these.
from grid_engine_twin import PROGRAMS, GridEngineTwin, started  # noqa: E402
from recording_site import RecordingSite, recording_site  # noqa: E402

from support import TEHO  # noqa: E402
from teho.clusters.catalogue import load_cluster  # noqa: E402

_SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1 --mem=1G
#SBATCH --output={output} --array=1-{jobs}
echo "$# $?"; bash -c 'echo "inner $((6 * SLURM_ARRAY_TASK_ID))"'; cat /dev/null
echo error >&2; exit $((SLURM_ARRAY_TASK_ID % 5))
"""
_GRID_ENGINE = """\
#$ -S {shell} -l h_rt=0:15:0 -l h_vmem=1G -wd {place} -j y -o {place}/$TASK_ID.out -t 1-{jobs}
#$ -N broken {variables}
echo "$# $?"; {shell} -l -c 'echo "inner $((6 * SGE_TASK_ID))"'; cat /dev/null
echo error >&2; exit $((SGE_TASK_ID % 5))
"""
_PATIENCE_S = 900
_Breakage = Callable[[Path, "dict[str, str]"], None]


def _missing(start: Path, variables: dict[str, str]) -> None:
    del variables
    start.unlink()


def _not_executable(start: Path, variables: dict[str, str]) -> None:
    del variables
    start.chmod(0o644)


def _other_architecture(start: Path, variables: dict[str, str]) -> None:
    del variables
    start.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))


def _hanging_files(start: Path, variables: dict[str, str]) -> None:
    # As a process that waits for a file system that does not answer.
    del variables
    start.write_text("#!/bin/sh\nexec sleep 5\n")


def _command(text: str) -> _Breakage:
    """Replace Teho's command."""

    def plant(start: Path, variables: dict[str, str]) -> None:
        del variables
        program = start.with_name("recorder")
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        before, _, rest = start.read_text().partition("said=$(")
        start.write_text(f"{before}said=$({program} record-job{rest.partition(' record-job')[2]}")

    return plant


def _variable(name: str, value: str) -> _Breakage:
    def plant(start: Path, variables: dict[str, str]) -> None:
        del start
        variables[name] = value

    return plant


_BREAKAGES: dict[str, _Breakage] = {
    "nothing: the recorder works": lambda *_: None,
    "the program is missing": _missing,
    "the program is not executable": _not_executable,
    "the program is for another architecture": _other_architecture,
    "the file system of the program hangs": _hanging_files,
    "Python is missing": _command("exec /nowhere/python"),
    "Python crashes": _command("echo crash >&2; kill -SEGV $$"),
    "Python hangs": _command("exec sleep 5"),
    "the disk is full": _variable("TEHO_HOME", "/dev/full/home"),
    "the directory of the recordings is a file": _variable("TEHO_HOME", "/etc/passwd"),
    "a setting is wrong": _variable("TEHO_EVERY", "never"),
    "PYTHONHOME is of another Python": _variable("PYTHONHOME", "/nowhere"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run jobs after `teho always on`.")
    parser.add_argument("--jobs", type=int, default=100, help="for each breakage")
    parser.add_argument("--grid-engine", action="store_true", help="not Slurm")
    options = parser.parse_args(arguments)
    if options.grid_engine:
        return _on_grid_engine(options.jobs)
    changed = total = 0
    with recording_site(3, apart=True) as site:
        site.twin.environment.update({"HOME": str(site.folder), "SHELL": "/bin/bash"})
        on = site.teho("always", "on")
        if on.returncode:
            raise RuntimeError(on.stderr)
        hook = site.twin.run("bash", "-c", '. ~/.bashrc; printf %s "$BASH_ENV"').stdout
        expected = _outcomes(site, "without", options.jobs, {})
        print("| what is broken | jobs | changed | time for all |\n|---|---|---|---|")
        for number, (what, plant) in enumerate(_BREAKAGES.items()):
            began_s = time.monotonic()
            folder = site.folder / f"broken-{number}"
            folder.mkdir()
            start = folder / "start"
            start.write_bytes((site.folder / "teho" / "always" / "start").read_bytes())
            start.chmod(0o755)
            variables = {"BASH_ENV": hook.replace(f"{site.folder}/teho/always", str(folder))}
            plant(start, variables)
            found = _outcomes(site, str(number), options.jobs, variables)
            different = sum(found.get(task) != outcome for task, outcome in expected.items())
            changed, total = changed + different, total + len(expected)
            took_s = time.monotonic() - began_s
            print(f"| {what} | {len(expected)} | {different} | {took_s:.0f} s |", flush=True)
        recorded = len([*site.home.glob("runs/[!.]*")])
    print(f"\n{changed} of {total} jobs changed. {recorded} recordings were made.")
    return 1 if changed else 0


def _on_grid_engine(jobs: int) -> int:
    changed = total = 0
    with (
        tempfile.TemporaryDirectory(prefix="home-") as folder,
        started(load_cluster("arc4", {}), root_home=Path(folder)) as twin,
    ):
        place = Path(folder)
        tools = place / "tools"
        tools.mkdir()
        (tools / "qconf").symlink_to(PROGRAMS / "qconf")
        for queue in twin.ask("qconf", "-sql").stdout.split():
            twin.ask("qconf", "-mattr", "queue", "shell_start_mode", "posix_compliant", queue)
        user = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), folder)
        user |= {"PATH": str(tools), "TEHO_HOME": str(place / "home")}
        profile = place / ".profile"
        expected = {
            shell: _of_grid_engine(twin, place, shell, jobs, {}) for shell in ("bash", "sh")
        }
        for before in expected.values():
            if any(code != str(int(task) % 5) for task, (_, code) in before.items()):
                raise RuntimeError("the jobs without Teho have other exit codes than their scripts")
        on = twin.ask(*TEHO, "always", "on", environment=user)
        if on.returncode:
            raise RuntimeError(on.stderr)
        line = profile.read_text()
        print("| what is broken | shell | jobs | changed | time for all |\n|---|---|---|---|---|")
        for number, (what, plant) in enumerate(_BREAKAGES.items()):
            for shell, before in expected.items():
                began_s = time.monotonic()
                broken = place / f"broken-{number}-{shell}"
                broken.mkdir()
                start = broken / "start"
                start.write_bytes((place / "teho" / "always" / "start").read_bytes())
                start.chmod(0o755)
                profile.write_text(line.replace(f"{place}/teho/always", str(broken)))
                variables: dict[str, str] = {}
                plant(start, variables)
                found = _of_grid_engine(twin, place, shell, jobs, variables)
                different = sum(found.get(task) != outcome for task, outcome in before.items())
                changed, total = changed + different, total + len(before)
                took_s = time.monotonic() - began_s
                print(f"| {what} | {shell} | {jobs} | {different} | {took_s:.0f} s |", flush=True)
        recorded = len([*(place / "home").glob("runs/[!.]*")])
    print(f"\n{changed} of {total} jobs changed. {recorded} recordings were made.")
    return 1 if changed else 0


def _of_grid_engine(
    twin: GridEngineTwin, place: Path, shell: str, jobs: int, variables: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Run an array, and return what each task printed, and its exit code."""
    folder = Path(tempfile.mkdtemp(prefix="output-", dir=place))
    script = folder / "script.sh"
    words = ",".join(f"{name}={value}" for name, value in variables.items())
    script.write_text(
        _GRID_ENGINE.format(
            shell=f"/bin/{shell}", place=folder, jobs=jobs, variables=f"-v {words}" if words else ""
        )
    )
    sent = twin.ask(str(PROGRAMS / "qsub"), "-terse", str(script))
    number = sent.stdout.partition(".")[0].strip()
    if not number.isdecimal():
        raise RuntimeError(f"qsub: {sent.stdout}{sent.stderr}")
    end_s = time.monotonic() + _PATIENCE_S
    ends: dict[str, str] = {}
    while len(ends) < jobs:
        if time.monotonic() > end_s:
            raise RuntimeError(f"{jobs - len(ends)} of {jobs} tasks have not ended")
        time.sleep(1)
        text = twin.ask("qacct", "-j", number).stdout
        found = re.findall(r"^taskid +(\d+).*?^exit_status +(\d+)", text, re.MULTILINE | re.DOTALL)
        ends = dict(found)
    return {task: ((folder / f"{task}.out").read_text(), code) for task, code in ends.items()}


def _outcomes(
    site: RecordingSite, name: str, jobs: int, variables: dict[str, str]
) -> dict[str, tuple[str, str]]:
    """Run an array, and return what each task printed, and its state and exit code."""
    say(name)
    folder = site.folder / f"output-{name}"
    folder.mkdir()
    script = folder / "script.sh"
    script.write_text(_SCRIPT.format(output=folder / "%a.out", jobs=jobs))
    words = [f"{key}={value}" for key, value in variables.items()]
    sent = site.twin.run("env", *words, "sbatch", "--parsable", str(script))
    if sent.returncode:
        raise subprocess.CalledProcessError(sent.returncode, "sbatch", stderr=sent.stderr)
    job = sent.stdout.strip()
    ends: dict[str, str] = {}

    def is_over() -> bool:
        rows = site.twin.run("sacct", "-XnPj", job, "-o", "JobID,State,ExitCode").stdout.split()
        ends.clear()
        ends.update(row.split("|", 1) for row in rows)
        done = [end for end in ends.values() if end.startswith(("COMPLETED", "FAILED"))]
        return len(done) == jobs

    site.until(f"the end of {name}", is_over, _PATIENCE_S)
    return {
        str(task): ((folder / f"{task}.out").read_text(), ends[f"{job}_{task}"])
        for task in range(1, jobs + 1)
    }


if __name__ == "__main__":
    sys.exit(main())
