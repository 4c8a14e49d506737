"""Run jobs of a real Slurm after `teho always on`, with something broken: no job may change.

python benchmarks/always_jobs.py                 100 jobs for each breakage
python benchmarks/always_jobs.py --jobs 10

It needs what the tests on twins need: Debian's Slurm, and root. The output and the exit code of
each job are compared with a job without Teho.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common import ROOT, say

sys.path[:0] = [str(ROOT / "tests" / "twins"), str(ROOT / "tests")]

from recording_site import RecordingSite, recording_site  # noqa: E402 - the path above leads to it

_SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1 --mem=1G
#SBATCH --output={output} --array=1-{jobs}
echo "$# $?"; bash -c 'echo "inner $((6 * SLURM_ARRAY_TASK_ID))"'; cat /dev/null
echo error >&2; exit $((SLURM_ARRAY_TASK_ID % 5))
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
    options = parser.parse_args(arguments)
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
