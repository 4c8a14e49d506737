"""Jobs that run to their end on a real Grid Engine of ARC4's shape, one for each template.

Stubs stand for the programs of a job: they record how they were called, and where. All
jobs are submitted at once, as each waits seconds for the scheduler.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from grid_engine_twin import GridEngineTwin

from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers.script.write import ScriptOptions, write_script

pytestmark = pytest.mark.xdist_group("grid_engine")

PROGRAMS = ("accelerate", "deepspeed", "horovodrun", "python", "torchrun")
STUB = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > "$HERE/argv.$$"
env -0 > "$HERE/environment.$$"
ls -A "$TMPDIR" > "$HERE/disk.$$"
"""
AWKWARD = ("a b", "c'd", 'e"f', "g#h", "$HOME", "*", "i\\j", "", "ä", "new\nline")
PYTHON = ("python", "train.py", "--epochs", "3")
AGAIN = 'if [ "$RESTARTED" = 1 ]; then exit 0; else exit 99; fi'
CHECKPOINTS = """if [ "$RESTARTED" = 1 ]; then echo again; exit 0; fi
trap 'echo told; exit 1' USR1
while :; do sleep 0.1; done"""


class Case(msgspec.Struct, frozen=True):
    """A job to run: what is asked for, and what its one process is to see."""

    request: Request
    options: ScriptOptions = ScriptOptions()
    argv: tuple[str, ...] = ()
    """Of the program or its launcher."""
    slots: int = 1
    threads: int = 1
    modules: str = "load anaconda"


class Ended(msgspec.Struct, frozen=True):
    """A job that has ended, with what it left in its own directory."""

    folder: Path
    code: int
    said: str

    @property
    def number(self) -> str:
        (number,) = re.findall(r"Your job(?:-array)? (\d+)", self.said)
        return str(number)

    def records(self, kind: str) -> list[str]:
        return [path.read_text() for path in sorted(self.folder.glob(f"{kind}.*"))]

    def only(self, kind: str) -> str:
        (record,) = self.records(kind)
        return record


def _gpus(count: int, launcher: str = "plain", command: tuple[str, ...] = PYTHON) -> Request:
    return Request(gpus=count, launcher=launcher, command=command, time_s=900.0, name="case")


def _cores(count: int, *command: str) -> Request:
    return Request(gpus=0, cpus=count, command=command, time_s=900.0, memory_mib=2048 * count)


SCRIPT = PYTHON[1:]
CASES = {
    "cores": Case(_cores(4, *PYTHON), argv=PYTHON, slots=4, threads=4),
    "one-gpu": Case(_gpus(1), argv=PYTHON, threads=10),
    "torchrun": Case(
        _gpus(2, "torchrun"),
        argv=("torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=2", *SCRIPT),
        threads=10,
    ),
    "accelerate": Case(
        _gpus(2, "accelerate"),
        argv=("accelerate", "launch", "--multi_gpu", "--num_processes=2", "--num_machines=1",
              "--main_process_port=PORT", *SCRIPT),
        threads=10,
    ),
    "deepspeed": Case(
        _gpus(2, "deepspeed"),
        argv=("deepspeed", "--num_gpus=2", "--master_port=PORT", *SCRIPT),
        threads=10,
    ),
    "horovod": Case(
        # ARC4 documents no software with Horovod.
        _gpus(2, "horovod"), ScriptOptions(framework="none"),
        argv=("horovodrun", "-np", "2", *PYTHON), threads=10, modules="",
    ),
    "tensorflow": Case(
        _gpus(1), ScriptOptions(framework="tensorflow"), argv=PYTHON, threads=10,
    ),
    "four-gpus": Case(
        _gpus(4, "torchrun", ("./prog.py", *AWKWARD)),
        argv=("torchrun", "--standalone", "--nnodes=1", "--nproc_per_node=4", "./prog.py",
              *AWKWARD),
        threads=10,
    ),
    "staged": Case(
        _gpus(1), ScriptOptions(stage=("data.tar", "one file"), framework="none"),
        argv=PYTHON, threads=10, modules="",
    ),
    "awkward": Case(
        _cores(1, "python", *AWKWARD), ScriptOptions(log="the log.txt", framework="any"),
        argv=("python", *AWKWARD), modules="load cuda/11.1.1",
    ),
}  # fmt: skip
OTHERS = {
    "array": Case(_cores(1, *PYTHON), ScriptOptions(array="1-5:2%2")),
    "again": Case(_cores(1, "sh", "-c", AGAIN), ScriptOptions(requeue=True)),
    "told": Case(
        _cores(1, "sh", "-c", CHECKPOINTS),
        ScriptOptions(requeue=True, signal_before_s=898.0),
    ),
    "failing": Case(_cores(1, "sh", "-c", "exit 3")),
}


@pytest.fixture(scope="module")
def ended(arc4: GridEngineTwin) -> dict[str, Ended]:
    every = {**CASES, **OTHERS}
    over = threading.Event()
    with ThreadPoolExecutor(len(every) + 1) as threads:
        threads.submit(arc4.send_lost_jobs_again, over)
        try:
            runs = list(threads.map(lambda item: _run(arc4, *item), every.items()))
        finally:
            over.set()
        return dict(zip(every, runs, strict=True))


def _run(arc4: GridEngineTwin, name: str, case: Case) -> Ended:
    """Submit a case from a directory of its own, and wait for its end."""
    folder = _prepared(arc4, name)
    _write(arc4, folder, case)
    argv = ("qsub", "-sync", "y", "-v", f"BASH_ENV={folder}/setup", "job.sh")
    try:
        # On a busy machine a job may get lost on its way to the execution daemon.
        done = arc4.ask(*argv, cwd=folder, patience_s=420.0)
    except subprocess.TimeoutExpired:
        pytest.fail(f"{name} has not ended:\n{arc4.ask('qstat', '-f', '-u', '*').stdout}")
    return Ended(folder, done.returncode, done.stdout + done.stderr)


def _write(arc4: GridEngineTwin, folder: Path, case: Case) -> None:
    options = answer(case.request, [arc4.cluster], even_if_retired=True).options
    script = write_script(options[-1], arc4.cluster, case.options)
    (folder / "job.sh").write_text(script.text)


def _prepared(arc4: GridEngineTwin, name: str) -> Path:
    """Make a directory that the user may write to, with stubs and what a job would stage."""
    folder = arc4.home / name
    stubs = folder / "stubs"
    stubs.mkdir(parents=True)
    for program in PROGRAMS:
        (stubs / program).write_text(STUB)
        (stubs / program).chmod(0o755)
    (stubs / "activate").write_text('echo "$1" > "$HERE/environment-name"\n')
    # Read by bash after the profile, which would take the stubs off the PATH again.
    (folder / "setup").write_text(
        f'export HERE="{folder}" PATH="{stubs}:$PATH"\n'
        'module() { echo "$*" > "$HERE/modules"; }\n'
    )
    (folder / "one file").write_text("data")
    with tarfile.open(folder / "data.tar", "w") as archive:
        archive.add(folder / "one file", "images/1")
    user = arc4.home.stat()
    os.chown(folder, user.st_uid, user.st_gid)
    return folder


def _accounting(arc4: GridEngineTwin, number: str, count: int = 1) -> list[dict[str, str]]:
    """Return the job's records; they are written up to a second or two after its end."""
    end_s = time.monotonic() + 30
    while True:
        shown = arc4.ask("qacct", "-j", number).stdout
        records = re.split(r"^=+\n", shown, flags=re.MULTILINE)[1:]
        if len(records) >= count or time.monotonic() > end_s:
            break
        time.sleep(0.2)
    found = []
    for record in records:
        rows = [line.split(maxsplit=1) for line in record.splitlines()]
        found.append({row[0]: row[-1].strip() for row in rows if row})
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_program_runs_as_asked(name: str, ended: dict[str, Ended]) -> None:
    case, job = CASES[name], ended[name]
    assert job.code == 0, job.said
    environment = dict(line.split("=", 1) for line in job.only("environment").split("\0") if line)
    port = environment.get("MASTER_PORT", "")
    argv = tuple(word.replace("PORT", port) for word in case.argv)
    assert tuple(job.only("argv").split("\0")[:-1]) == argv
    assert ("PORT" in "".join(case.argv)) == (10000 <= int(port or 0) < 20000)
    assert environment["NSLOTS"] == str(case.slots)
    assert environment["OMP_NUM_THREADS"] == str(case.threads)
    assert environment["TMPDIR"].startswith("/tmp/")
    assert "GOMP_CPU_AFFINITY" not in environment
    loaded = job.folder / "modules"
    assert (loaded.read_text().strip() if loaded.exists() else "") == case.modules


@pytest.mark.parametrize(
    ("name", "environment"), [("one-gpu", "pytorch-gpu"), ("tensorflow", "tensorflow-gpu")]
)
def test_the_framework_is_activated(name: str, environment: str, ended: dict[str, Ended]) -> None:
    assert (ended[name].folder / "environment-name").read_text().strip() == environment


def test_data_is_staged(ended: dict[str, Ended]) -> None:
    assert ended["staged"].only("disk").split("\n")[:-1] == ["images", "one file"]
    assert ended["one-gpu"].only("disk") == ""


def test_the_log_is_where_it_was_requested(ended: dict[str, Ended]) -> None:
    assert (ended["awkward"].folder / "the log.txt").exists()


@pytest.mark.parametrize(
    ("name", "queue", "slots", "environment", "asked"),
    [
        # Any node with that many cores, large memory or not: Grid Engine chooses the queue.
        ("cores", "standard.q|high-memory.q", "4", "smp", "h_vmem=2048M"),
        # Cores come with the GPUs, and are not slots.
        ("one-gpu", "gpu.q", "1", "NONE", "coproc_v100=1"),
        ("four-gpus", "gpu.q", "1", "NONE", "coproc_v100=4"),
    ],
)
def test_the_accounting_has_what_was_asked_for(
    name: str,
    queue: str,
    slots: str,
    environment: str,
    asked: str,
    arc4: GridEngineTwin,
    ended: dict[str, Ended],
) -> None:
    (record,) = _accounting(arc4, ended[name].number)
    assert record["qname"] in queue.split("|")
    assert (record["slots"], record["granted_pe"]) == (slots, environment)
    assert asked in record["category"]
    assert (record["failed"], record["exit_status"]) == ("0", "0")


def test_every_task_of_an_array_runs(arc4: GridEngineTwin, ended: dict[str, Ended]) -> None:
    job = ended["array"]
    assert job.code == 0, job.said
    tasks = sorted(re.findall(r"SGE_TASK_ID=(\d+)", "\0".join(job.records("environment"))))
    assert tasks == ["1", "3", "5"]
    assert sorted(one["taskid"] for one in _accounting(arc4, job.number, 3)) == tasks


def _ran_again(arc4: GridEngineTwin, number: str) -> None:
    """Check that a job asked to be queued again, and then succeeded."""
    first, *others = [one["exit_status"] for one in _accounting(arc4, number, 2)]
    # If the master loses the job, the twin sends it again: this is one more record.
    assert (first, {*others}) == ("99", {"0"})


def test_exit_code_99_runs_the_job_again(arc4: GridEngineTwin, ended: dict[str, Ended]) -> None:
    job = ended["again"]
    assert job.code == 0, job.said
    _ran_again(arc4, job.number)


def test_a_program_with_an_early_signal_runs_again(
    arc4: GridEngineTwin, ended: dict[str, Ended]
) -> None:
    job = ended["told"]
    assert job.code == 0, job.said
    (output,) = job.folder.glob("*.o*")
    assert output.read_text().split() == ["told", "again"]
    _ran_again(arc4, job.number)


def test_the_exit_code_is_the_programs(arc4: GridEngineTwin, ended: dict[str, Ended]) -> None:
    assert ended["failing"].code == 3
    (record,) = _accounting(arc4, ended["failing"].number)
    assert record["exit_status"] == "3"


def test_a_job_waits_for_another_and_is_found_by_its_comment(arc4: GridEngineTwin) -> None:
    folder = _prepared(arc4, "waiting")
    first = _submit(arc4, folder, Case(_cores(1, "sleep", "60")))
    comment = "4f0c6b8e-5a33-4a5e-9d6e-000000000001"
    options = ScriptOptions(after=(first,))
    second = _submit(arc4, folder, Case(_cores(1, *PYTHON), options), "-ac", f"teho={comment}")
    shown = arc4.ask("qstat", "-j", "*").stdout
    (found,) = [
        job for job in re.split(r"^=+\n", shown, flags=re.MULTILINE) if f"teho={comment}" in job
    ]
    assert re.search(rf"^job_number:\s+{second}$", found, re.MULTILINE)
    assert re.search(rf"^jid_predecessor_list\b.*\s{first}$", found, re.MULTILINE)
    assert re.search(rf"^\s*{second} .* hqw ", arc4.ask("qstat").stdout, re.MULTILINE)
    arc4.ask("qdel", second, first)


def _submit(arc4: GridEngineTwin, folder: Path, case: Case, *options: str) -> str:
    _write(arc4, folder, case)
    environment = ("-v", f"BASH_ENV={folder}/setup")
    done = arc4.ask("qsub", "-terse", *options, *environment, "job.sh", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
