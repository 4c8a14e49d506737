"""This section shows whether jobs change after `teho always on`, if something is broken.

A real Slurm and a real Grid Engine run the same short jobs: first without Teho, then after
`teho always on`, and then once for each kind of failure. For example, Python is missing, the disk
of the recordings is full, or the file system of Teho's program does not answer. A part of Teho that
hangs does so for at least 60 s. Each job is compared with the same job without Teho. A job counts
as *changed* if its output, its exit code or its final state is different, or if it takes 15 s
longer than the slowest job without Teho. [Always](#always) has the small times that a job waits for
Teho. `python benchmarks/always_jobs.py` prints a line for each kind of failure.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from common import ROOT, Figures, Row, say

# At the end: the tests have a folder `jobs` too.
sys.path += [str(ROOT / "tests" / "twins"), str(ROOT / "tests")]

# The path above leads to these.
import grid_engine_twin
import silent_files
import slurm_daemons
from grid_engine_twin import PROGRAMS, GridEngineTwin
from recording_site import RecordingSite, recording_site
from small_disk import fill, small_disk

from support import TEHO
from teho.clusters.catalogue import load_cluster

_SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=5 --gres=gpu:v100:1 --mem=1G
#SBATCH --output={output} --array=1-{jobs}
echo "$# $?"; $CONTAINER bash -c 'echo "inner $((6 * SLURM_ARRAY_TASK_ID))"'; cat /dev/null
sleep 2; echo error >&2; exit $((SLURM_ARRAY_TASK_ID % 5))
"""
_GRID_ENGINE = """\
#$ -S {shell} -l h_rt=0:15:0 -l h_vmem=1G -wd {place} -j y -o {place}/$TASK_ID.out -t 1-{jobs}
#$ -N broken {variables}
echo "$# $?"; $CONTAINER {shell} -l -c 'echo "inner $((6 * SGE_TASK_ID))"'; cat /dev/null
sleep 2; echo error >&2; exit $((SGE_TASK_ID % 5))
"""
_CONTAINER = """\
#!/bin/sh
exec unshare --mount --pid --fork --mount-proc \\
    sh -c 'mount -t tmpfs none "$0" && exec "$@"' '{hidden}' "$@"
"""
"""Runs a command in which Teho's program is not visible."""
_JOBS = 100
"""For each kind of failure."""
_PATIENCE_S = 900
_LATE_S = 15
_HANG_S = 60
_RECORDER_S = 5
_SPARE_MIB = 1024
"""The recorder does not start if less space is free."""
_WORKING = "nothing: the recorder works"


class _Outcome(NamedTuple):
    """What is known about a job after its end."""

    printed: str
    end: str
    elapsed_s: float


class _Result(NamedTuple):
    """The jobs with one kind of failure."""

    what: str
    jobs: int
    changed: int
    added_s: float
    """How much longer these jobs took than without Teho, on average."""
    recorder: str
    """What the recorder did: its last error, or the number of recordings."""


class _Disks(NamedTuple):
    """Broken file systems. They are mounted before the nodes start: a node sees no later mount."""

    full: Path
    filling: Path
    silent_program: Path
    silent_home: Path
    servers: Mapping[Path, subprocess.Popen[str]]


class _Case:
    """An installation in which something is broken.

    Args:
        folder: an empty folder.
        program: the program that starts the recorder.
        disks: file systems for it.
    """

    def __init__(self, folder: Path, program: str, disks: _Disks) -> None:
        folder.mkdir()
        self.folder = folder
        self._home = folder
        self.disks = disks
        self.start = folder / "start"
        self.start.write_text(program)
        self.start.chmod(0o755)
        self.variables: dict[str, str] = {}
        """Variables of the jobs."""
        self.during: AbstractContextManager[object] = nullcontext()
        """What happens while the jobs run."""
        self._before = 0

    def begin(self, home: Path) -> None:
        """Count the recordings that exist before the jobs."""
        self._home = Path(self.variables.get("TEHO_HOME", home))
        self._before = self._recordings()

    def recorder(self) -> str:
        """Return what the recorder did; it may need some seconds after the end of the job."""
        problem = self.folder / "problem"
        end_s = time.monotonic() + _RECORDER_S
        while time.monotonic() < end_s:
            if problem.exists() and (text := problem.read_text()):
                return text.partition(" on ")[2].partition(": ")[2].strip()
            if (new := self._recordings() - self._before) > 0:
                return f"recordings: {new}"
            time.sleep(0.2)
        return "no recording"

    def _recordings(self) -> int:
        if self._home.suffix == ".silent":
            return 0  # this file system does not answer
        with contextlib.suppress(OSError):
            return len([*self._home.glob("runs/[!.]*")])
        return 0


def _missing(case: _Case) -> None:
    case.start.unlink()


def _not_executable(case: _Case) -> None:
    case.start.chmod(0o644)


def _other_architecture(case: _Case) -> None:
    case.start.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))


def _hanging(case: _Case) -> None:
    case.start.write_text(f"#!/bin/sh\nexec sleep {_HANG_S}\n")


def _command(text: str) -> Callable[[_Case], None]:
    """Replace Teho's command."""

    def plant(case: _Case) -> None:
        program = case.folder / "recorder"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        before, _, rest = case.start.read_text().partition("said=$(")
        case.start.write_text(
            f"{before}said=$({program} record-job{rest.partition(' record-job')[2]}"
        )

    return plant


def _variable(name: str, value: str) -> Callable[[_Case], None]:
    def plant(case: _Case) -> None:
        case.variables[name] = value

    return plant


def _full(case: _Case) -> None:
    case.variables["TEHO_HOME"] = str(case.disks.full / "home")


def _becomes_full(case: _Case) -> None:
    case.variables["TEHO_HOME"] = str(case.disks.filling / "home")
    case.during = _fills_and_empties(case.disks.filling)


def _silent_program(case: _Case) -> None:
    case.start = case.disks.silent_program / "start.bin"
    case.during = _answers_later(case.disks.servers[case.disks.silent_program])


def _silent_home(case: _Case) -> None:
    case.variables["TEHO_HOME"] = str(case.disks.silent_home / "home.silent")
    case.during = _answers_later(case.disks.servers[case.disks.silent_home])


def _container(case: _Case) -> None:
    container = case.folder / "container"
    container.write_text(_CONTAINER.format(hidden=case.folder))
    container.chmod(0o755)
    case.variables["CONTAINER"] = str(container)


_BREAKAGES: dict[str, Callable[[_Case], None]] = {
    _WORKING: lambda _: None,
    "the program is missing": _missing,
    "the program is not executable": _not_executable,
    "the program is for another architecture": _other_architecture,
    "the program hangs": _hanging,
    "the file system of the program does not answer": _silent_program,
    "Python is missing": _command("exec /nowhere/python"),
    "Python crashes": _command("echo crash >&2; kill -SEGV $$"),
    "Python hangs": _command(f"exec sleep {_HANG_S}"),
    "the disk is full": _full,
    "the disk becomes full again and again": _becomes_full,
    "the file system of the recordings does not answer": _silent_home,
    "the path of the recordings is not valid": _variable("TEHO_HOME", "/dev/full/home"),
    "the directory of the recordings is a file": _variable("TEHO_HOME", "/etc/passwd"),
    "a setting is wrong": _variable("TEHO_EVERY", "never"),
    "PYTHONHOME is of another Python": _variable("PYTHONHOME", "/nowhere"),
    "a part of the job runs in a container": _container,
}


def measure(*, quick: bool) -> list[Row]:
    jobs = 2 if quick else _JOBS
    rows = []
    for title, (why_not, run) in _SCHEDULERS.items():
        if why := why_not():
            say(f"{title} is left out: {why}")
            continue
        results = []
        for one in run(jobs):
            say(f"{title}: {one.what}: {one.changed} of {one.jobs} changed; {one.recorder}")
            results.append(one)
        rows += _rows(title, results)
    return rows


def _rows(title: str, results: Sequence[_Result]) -> Iterator[Row]:
    broken = [one for one in results if one.what != _WORKING]
    kinds = len({one.what for one in broken})
    for group, what in (
        ([one for one in results if one.what == _WORKING], "with a recorder that works"),
        (broken, f"with {kinds} kinds of failures"),
    ):
        jobs = sum(one.jobs for one in group)
        changed = sum(one.changed for one in group)
        yield Row(
            what=f"{title}: jobs that changed, of {jobs:,} jobs {what}",
            unit="jobs",
            ours=Figures.of(changed),
            ours_text=str(changed),
            budget=0,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run jobs after `teho always on`.")
    parser.add_argument("--jobs", type=int, default=_JOBS, help="for each kind of failure")
    parser.add_argument("--grid-engine", action="store_true", help="not Slurm")
    options = parser.parse_args(arguments)
    why_not, run = _SCHEDULERS["Grid Engine" if options.grid_engine else "Slurm"]
    if why := why_not():
        raise SystemExit(why)
    print("| what is broken | jobs | changed | longer by | recorder |\n|---|---|---|---|---|")
    changed = 0
    for one in run(options.jobs):
        changed += one.changed
        cells = (one.what, one.jobs, one.changed, f"{one.added_s:.2f} s", one.recorder)
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return 1 if changed else 0


def _on_slurm(jobs: int) -> Iterator[_Result]:
    with _disks() as disks, recording_site(3, apart=True) as site:
        site.twin.environment.update({"HOME": str(site.folder), "SHELL": "/bin/bash"})
        on = site.teho("always", "on")
        if on.returncode:
            raise RuntimeError(on.stderr)
        hook = site.twin.run("bash", "-c", '. ~/.bashrc; printf %s "$BASH_ENV"').stdout
        program = site.folder / "teho" / "always" / "start"
        expected = _of_slurm(site, "without", jobs, {})
        for number, (what, plant) in enumerate(_BREAKAGES.items()):
            case = _Case(site.folder / f"broken-{number}", program.read_text(), disks)
            plant(case)
            variables = case.variables | {"BASH_ENV": hook.replace(str(program), str(case.start))}
            case.begin(site.home)
            with case.during:
                found = _of_slurm(site, str(number), jobs, variables)
            yield _result(what, expected, found, case.recorder())


def _on_grid_engine(jobs: int) -> Iterator[_Result]:
    with (
        _disks() as disks,
        tempfile.TemporaryDirectory(prefix="home-") as folder,
        grid_engine_twin.started(load_cluster("arc4", {}), root_home=Path(folder)) as twin,
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
            if any(int(one.end) != int(task) % 5 for task, one in before.items()):
                raise RuntimeError("the jobs without Teho have other exit codes than their scripts")
        on = twin.ask(*TEHO, "always", "on", environment=user)
        if on.returncode:
            raise RuntimeError(on.stderr)
        line, program = profile.read_text(), place / "teho" / "always" / "start"
        for number, (what, plant) in enumerate(_BREAKAGES.items()):
            case = _Case(place / f"broken-{number}", program.read_text(), disks)
            plant(case)
            profile.write_text(line.replace(str(program), str(case.start)))
            found = {}
            case.begin(place / "home")
            with case.during:
                for shell in expected:
                    found[shell] = _of_grid_engine(twin, place, shell, jobs, case.variables)
            recorder = case.recorder()
            for shell, before in expected.items():
                yield _result(what, before, found[shell], f"{shell}; {recorder}")


_SCHEDULERS: dict[str, tuple[Callable[[], str], Callable[[int], Iterator[_Result]]]] = {
    "Slurm": (slurm_daemons.why_not, _on_slurm),
    "Grid Engine": (grid_engine_twin.why_not, _on_grid_engine),
}


def _result(
    what: str, before: Mapping[str, _Outcome], found: Mapping[str, _Outcome], recorder: str
) -> _Result:
    """Compare jobs with the same jobs without Teho."""
    latest_s = max(one.elapsed_s for one in before.values()) + _LATE_S
    changed = sum(
        task not in found or found[task][:2] != one[:2] or found[task].elapsed_s > latest_s
        for task, one in before.items()
    )
    own_s, before_s = (fmean(o.elapsed_s for o in ends.values()) for ends in (found, before))
    return _Result(what, len(before), changed, own_s - before_s, recorder)


@contextmanager
def _disks() -> Iterator[_Disks]:
    """Mount the broken file systems.

    Raises:
        OSError: the kernel does not permit it.
    """
    with tempfile.TemporaryDirectory(prefix="disks-") as name, ExitStack() as stack:
        places = [Path(name) / one for one in ("full", "filling", "program", "home")]
        for place in places:
            place.mkdir()
        full, filling, program, home = places
        stack.enter_context(small_disk(full, 1))
        stack.enter_context(small_disk(filling, _SPARE_MIB + 64))
        fill(full)
        servers = {
            place: stack.enter_context(silent_files.mounted(place)) for place in (program, home)
        }
        yield _Disks(full, filling, program, home, servers)


@contextmanager
def _fills_and_empties(disk: Path) -> Iterator[None]:
    """Fill a disk and empty it, in turns of a second."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(1.0):
            data = fill(disk)
            ended.wait(1.0)
            data.unlink()

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        ended.set()
        worker.join()


@contextmanager
def _answers_later(server: subprocess.Popen[str]) -> Iterator[None]:
    """Answer all requests with an error after the jobs, so that their recorders end."""
    try:
        yield
    finally:
        server.terminate()
        server.wait()


def _of_grid_engine(
    twin: GridEngineTwin, place: Path, shell: str, jobs: int, variables: Mapping[str, str]
) -> dict[str, _Outcome]:
    """Run an array, and return the outcome of each task."""
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
    ends: dict[str, dict[str, str]] = {}
    while len(ends) < jobs:
        if time.monotonic() > end_s:
            raise RuntimeError(f"{jobs - len(ends)} of {jobs} tasks have not ended")
        time.sleep(1)
        text = twin.ask("qacct", "-j", number).stdout
        records = [
            dict(re.findall(r"^(\w+) +(\S+)", one, re.MULTILINE))
            for one in re.split(r"^=+\n", text, flags=re.MULTILINE)[1:]
        ]
        ends = {one["taskid"]: one for one in records}
    return {
        task: _Outcome(
            (folder / f"{task}.out").read_text(),
            one["exit_status"],
            float(one["ru_wallclock"].rstrip("s")),
        )
        for task, one in ends.items()
    }


def _of_slurm(
    site: RecordingSite, name: str, jobs: int, variables: Mapping[str, str]
) -> dict[str, _Outcome]:
    """Run an array, and return the outcome of each task."""
    folder = site.folder / f"output-{name}"
    folder.mkdir()
    script = folder / "script.sh"
    script.write_text(_SCRIPT.format(output=folder / "%a.out", jobs=jobs))
    words = [f"{key}={value}" for key, value in variables.items()]
    sent = site.twin.run("env", *words, "sbatch", "--parsable", str(script))
    if sent.returncode:
        raise subprocess.CalledProcessError(sent.returncode, "sbatch", stderr=sent.stderr)
    job = sent.stdout.strip()
    ends: dict[str, list[str]] = {}

    def is_over() -> bool:
        columns = ("sacct", "-XnPj", job, "-o", "JobID,State,ExitCode,ElapsedRaw")
        rows = [row.split("|") for row in site.twin.run(*columns).stdout.splitlines()]
        ends.clear()
        ends.update({row[0]: row[1:] for row in rows if row[1] in {"COMPLETED", "FAILED"}})
        return len(ends) == jobs

    site.until(f"the end of {name}", is_over, _PATIENCE_S, every_s=1.0)
    return {
        str(task): _Outcome((folder / f"{task}.out").read_text(), f"{state} {code}", float(elapsed))
        for task in range(1, jobs + 1)
        for state, code, elapsed in [ends[f"{job}_{task}"]]
    }


if __name__ == "__main__":
    sys.exit(main())
