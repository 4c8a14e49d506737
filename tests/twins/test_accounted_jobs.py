"""Jobs that Teho did not record, on a real Slurm with accounting and a real Grid Engine.

Jobs of all fates run side by side. Their lists, reports and digests are compared with what sacct
and qacct print, asked here with other columns and read by other code.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from grid_engine_twin import GridEngineTwin
from sacct_rows import js1
from slurm_twin import SlurmTwin

from memory_group import has_memory_groups
from support import SOAK, TEHO
from teho.clusters.catalogue import load_cluster
from teho.units import GIB

GPU = ("--gres=gpu:v100:1", "--time=15", "--mem=1G")
# Busy for some of its time: what a job has used is whatever sacct says.
BUSY = f"""timeout 6 {sys.executable} -c '
import time
while True: time.sleep(0.02); sum(range(200_000))'; exit 0"""
GREEDY = f"exec {sys.executable} -c 'import time; kept = bytearray(300 << 20); time.sleep(5)'"
HAS_GROUPS = has_memory_groups()
"""Whether a job can run out of memory: without cgroups, Slurm does not notice it."""
CONF = (
    "PreemptType=preempt/qos",
    "PreemptMode=CANCEL",
    *(["TaskPlugin=task/cgroup"] if HAS_GROUPS else []),
)
TASKS = 192
"""Tasks of an array, of which every fifth fails. With the other jobs that sacct lists, these are
206. It lists no held job if it is asked for a time."""
REPORTED = 1 if SOAK else 12
"""One task of so many is reported, and all other jobs: a report takes some tenths of a second."""
REPORTS = """
import sys
from teho.cli.group import _guarded
for number, job in enumerate(sys.argv[2:]):
    code = _guarded(["report", job, "--format", "json", "-o", f"{sys.argv[1]}/{number}"])
    if code:
        sys.exit(f"{job}: exit code {code}")
"""
"""Writes the reports on several jobs: a process for each would take longer."""


class Jobs:
    """A twin of Puhti after its jobs have ended."""

    def __init__(self, twin: SlurmTwin) -> None:
        self.twin = twin
        self.late = self.send(
            "sleep 300", "--time=15", "--mem=100M", "--job-name=late", partition="small"
        )
        self.array = self.send(
            "exit $((SLURM_ARRAY_TASK_ID % 5 == 0))", "--time=15", "--mem=100M",
            f"--array=1-{TASKS}", "--job-name=sweep", partition="small",
        )  # fmt: skip
        self.busy = self.send(BUSY, *GPU, "--cpus-per-task=2", "--job-name=a|b\nc")
        self.failed = self.send("exit 3", *GPU)
        self.crashed = self.send("kill -SEGV $$", *GPU, "--job-name=crash")
        self.steps = self.send("srun -n 2 sleep 1; srun sleep 1", *GPU, "--ntasks=2")
        self.long = self.send("sleep 300", *GPU)
        self.nodes = self.send(
            "srun hostname", "--nodes=2", "--ntasks-per-node=1", *GPU, "--job-name=two nodes"
        )
        self.mixed = self.send("sleep 1", *GPU, ":", *GPU)
        self.again = self.send(
            'if [ -z "$SLURM_RESTART_COUNT" ]; then scontrol requeue $SLURM_JOB_ID; sleep 60; fi',
            *GPU, "--requeue",
        )  # fmt: skip
        self.greedy = self.send(GREEDY, "--gres=gpu:v100:1", "--time=15", "--mem=100M")
        self.held = self.send("true", *GPU, "--hold")
        # Slurm looks for such jobs every 30 s. The shortest time limit would be a minute.
        self._until(lambda: self._queue(self.late).startswith("RUNNING"))
        self.must("scontrol", "update", f"jobid={self.late}", "endtime=now+10")
        self._until(lambda: "BeginTime" in self._queue(self.again))
        time.sleep(2)  # Slurm's pause between the two runs
        self.must("scontrol", "update", f"jobid={self.again}", "starttime=now")
        self.must("scontrol", "update", f"jobid={self.long}", f"admincomment={self._summary()}")
        self.must("scancel", self.long)
        self._until(lambda: not self._unfinished())
        self.displaced = self.send("sleep 300", *GPU, "--exclusive")
        self._until(lambda: self._queue(self.displaced).startswith("RUNNING"))
        node = self._node_of(self.displaced)
        self.urgent = self.send("true", *GPU, "--exclusive", f"--nodelist={node}", "--qos=urgent")
        self.lost = self.send("sleep 300", *GPU, "--no-requeue", "--job-name=lost")
        self._until(lambda: self._queue(self.lost).startswith("RUNNING"))
        # Slurm itself takes the node back (ReturnToService=2).
        self.must(
            "scontrol", "update", f"nodename={self._node_of(self.lost)}", "state=down",
            "reason=test",
        )  # fmt: skip
        # The database may learn of these jobs only after their end.
        last = {self.displaced, self.urgent, self.lost}
        self._until(lambda: last <= self.sacct().keys() and not self._unfinished())

    def _node_of(self, job: str) -> str:
        return self.must("squeue", "-h", "-j", job, "-o", "%N").strip()

    def _summary(self) -> str:
        """Return what Jobstats writes at the end of a job: a GPU that was not used."""
        node = self._node_of(self.long)
        figures: dict[str, object] = {
            "cpus": 1, "total_time": 12.5, "used_memory": GIB // 2, "total_memory": GIB,
            "gpu_utilization": {"3": 0.0}, "gpu_used_memory": {"3": GIB},
            "gpu_total_memory": {"3": 32 * GIB},
        }  # fmt: skip
        return js1(**{node: figures})

    def send(self, script: str, *options: str, partition: str = "gpu") -> str:
        account = ("--account=project_2001234", f"--partition={partition}", "--output=/dev/null")
        words = [word for one in options for word in ((one, *account) if one == ":" else (one,))]
        sent = self.twin.run(
            "sbatch", "--parsable", *account, *words, stdin=f"#!/bin/bash\n{script}\n"
        )
        assert sent.returncode == 0, sent.stderr
        return sent.stdout.strip()

    def must(self, *argv: str) -> str:
        done = self.twin.run(*argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def teho(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.twin.run(*TEHO, *arguments)

    def json(self, *arguments: str) -> Any:
        done = self.teho(*arguments, "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def sacct(self, *options: str) -> dict[str, list[str]]:
        """Return the columns of each job: state, seconds, CPUs, CPU time, exit code."""
        columns = "--format=JobID,State,ElapsedRaw,AllocCPUS,TotalCPU,ExitCode"
        # With -X, TotalCPU would be 0.
        text = self.must("sacct", "-n", "-P", columns, *options)
        rows = [line.split("|") for line in text.splitlines()]
        return {row[0]: row[1:] for row in rows if "." not in row[0]}

    def peaks(self) -> dict[str, int]:
        """Return the memory of each job's largest task, in bytes; 0: Slurm has no sample."""
        text = self.must("sacct", "-n", "-P", "--noconvert", "-o", "JobID,MaxRSS")
        found: dict[str, int] = {}
        for name, size in (line.split("|") for line in text.splitlines()):
            job = name.partition(".")[0]
            found[job] = max(found.get(job, 0), int(size or 0))
        return found

    def reports(self, ids: list[str], folder: Path) -> dict[str, dict[str, Any]]:
        """Return the facts of the reports on several jobs."""
        self.must(sys.executable, "-c", REPORTS, str(folder), *ids)
        texts = [(folder / str(number)).read_text() for number in range(len(ids))]
        every = [{one["key"]: one["value"] for one in json.loads(text)["facts"]} for text in texts]
        return dict(zip(ids, every, strict=True))

    def _queue(self, job: str) -> str:
        return self.twin.run("squeue", "-h", "-j", job, "-o", "%T %r").stdout

    def _unfinished(self) -> bool:
        """Return whether the database still has to learn of an end."""
        goes_on = {"RUNNING", "COMPLETING", "REQUEUED", "PENDING"}
        return any(row[0] in goes_on for job, row in self.sacct().items() if job != self.held)

    def _until(self, condition: Any) -> None:
        end_s = time.monotonic() + 240
        while not condition():
            assert time.monotonic() < end_s, self.twin.run("squeue").stdout
            time.sleep(0.5)


@pytest.fixture(scope="module")
def jobs(slurm: None) -> Iterator[Jobs]:
    with (
        tempfile.TemporaryDirectory(prefix="site-") as folder,
        tempfile.TemporaryDirectory(prefix="twin-") as place,
        SlurmTwin(
            load_cluster("puhti", {}),
            Path(place),
            live={"gpu": 2, "M": 2},
            asleep=False,
            lines=CONF,
        ) as twin,
    ):
        twin.sacctmgr(["add qos urgent priority=1000 preempt=normal"])
        twin.sacctmgr(["modify user where name=root cluster=puhti set qos+=urgent"])
        twin.environment.update({"PATH": os.environ["PATH"], "TEHO_HOME": folder,
                                 "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder})  # fmt: skip
        yield Jobs(twin)


def _seconds(clock: str) -> float:
    """Read sacct's TotalCPU by hand."""
    days, _, rest = clock.rpartition("-")
    parts = [float(part) for part in rest.split(":")]
    return int(days or 0) * 86400 + sum(part * 60**n for n, part in enumerate(reversed(parts)))


def test_every_job_is_listed_with_the_figures_of_sacct(jobs: Jobs) -> None:
    rows, peaks = jobs.sacct(), jobs.peaks()
    listed = {line["id"]: line for line in jobs.json("jobs", "--since", "1d")["jobs"]}
    assert sorted(listed) == sorted(rows)
    assert len(listed) >= TASKS + 14 == 206
    words = {"COMPLETED": "completed", "FAILED": "failed", "CANCELLED": "cancelled",
             "TIMEOUT": "timed_out", "NODE_FAIL": "node_failed",
             "PREEMPTED": "preempted"}  # fmt: skip
    if HAS_GROUPS:
        words["OUT_OF_MEMORY"] = "out_of_memory"
    assert {state.split()[0] for state, *_ in rows.values()} == set(words)
    for job_id, (state, elapsed, cores, cpu, code) in rows.items():
        line = listed[job_id]
        assert line["state"] == words[state.split()[0]], job_id
        assert line["elapsed_s"] == int(elapsed)
        assert line["cores"] == int(cores)
        assert line["core_hours"] == pytest.approx(int(elapsed) * int(cores) / 3600)
        if _seconds(cpu) and int(elapsed):
            assert line["cores_used"] == pytest.approx(_seconds(cpu) / int(elapsed))
        else:
            assert line["cores_used"] is None
        if job_id != jobs.long:  # it has the memory of its summary
            assert line["memory_least_bytes"] == (peaks[job_id] or None)
        if state in {"COMPLETED", "FAILED"}:
            assert (line["exit_code"], line["signal"]) == _ending(code)
    assert listed[jobs.busy]["name"] == "a|b\nc"
    failed = [line for line in listed.values() if line["state"] == "failed"]
    assert len(failed) == TASKS // 5 + 2
    assert listed[jobs.crashed]["signal"] == signal.SIGSEGV
    assert listed[jobs.late]["state"] == "timed_out"
    assert listed[jobs.lost]["state"] == "node_failed"
    assert listed[jobs.displaced]["state"] == "preempted"
    assert listed[jobs.greedy]["state"] == ("out_of_memory" if HAS_GROUPS else "completed")


def _ending(code: str) -> tuple[int | None, int | None]:
    """Return exit code and signal of sacct's `3:0` or `0:11`."""
    status, _, number = code.partition(":")
    return (None, int(number)) if int(number) else (int(status), None)


@pytest.mark.soak
def test_reports_have_the_figures_of_sacct(jobs: Jobs, tmp_path: Path) -> None:
    rows = jobs.sacct()
    tasks = [one for one in rows if one.startswith(f"{jobs.array}_")]
    ids = [*(rows.keys() - set(tasks)), *tasks[::REPORTED]]
    for job_id, facts in jobs.reports(ids, tmp_path).items():
        state, elapsed, cores, cpu, code = rows[job_id]
        words = facts["state_words"]
        assert words.split()[0] == state.split()[0], job_id
        assert facts["elapsed_s"] == int(elapsed), job_id
        assert facts["core_walltime_s"] == int(elapsed) * int(cores), job_id
        if _seconds(cpu) and int(elapsed):
            assert facts["cpu_used_s"] == pytest.approx(_seconds(cpu)), job_id
        if state in {"COMPLETED", "FAILED"}:
            exit_code, number = _ending(code)
            end = f"(signal {number})" if number else f"(exit code {exit_code})"
            assert words == f"{state} {end}", job_id


def test_a_report_has_the_job_s_own_figures(jobs: Jobs) -> None:
    report = jobs.json("report", jobs.busy)
    facts = {fact["key"]: fact["value"] for fact in report["facts"]}
    _, elapsed, cores, cpu, _ = jobs.sacct("-j", jobs.busy)[jobs.busy]
    assert facts["elapsed_s"] == int(elapsed) >= 6
    assert facts["cpu_used_s"] == pytest.approx(_seconds(cpu))
    assert facts["cores_used"] == pytest.approx(_seconds(cpu) / int(elapsed))
    assert facts["core_walltime_s"] == int(elapsed) * int(cores)
    assert facts["cluster"] == "puhti"
    assert facts["job_name"] == "a|b\\nc"
    peak = jobs.must("sacct", "-n", "-P", "--noconvert", "-j", f"{jobs.busy}.batch", "-o", "MaxRSS")
    assert facts["memory_peak_bytes"] == int(peak)
    seff = jobs.teho("report", jobs.busy, "--format", "seff").stdout
    assert f"Job ID: {jobs.busy}\nCluster: puhti\nState: COMPLETED (exit code 0)\n" in seff
    assert f"Cores per node: {cores}\n" in seff


def test_every_fate_has_its_report(jobs: Jobs) -> None:
    def head(job: str) -> str:
        done = jobs.teho("report", job, "--short")
        assert done.returncode == 0, done.stderr
        return " ".join(done.stdout.split())

    assert head(jobs.failed).startswith("✗ The job failed after ")
    assert "with exit code 3." in head(jobs.failed)
    assert "SIGSEGV" in head(jobs.crashed)
    assert head(jobs.late).startswith("✗ The job ended at its time limit after ")
    assert "because a node failed" in head(jobs.lost)
    assert "because another job had priority (preemption)" in head(jobs.displaced)
    assert ("because memory ran out" in head(jobs.greedy)) is HAS_GROUPS
    assert head(jobs.long).startswith("! The job was cancelled after ")
    assert f"Job {jobs.steps} completed after " in head(jobs.steps)
    assert f"Job {jobs.nodes} completed after " in head(jobs.nodes)
    assert f"Job {jobs.held} held" in head(jobs.held)
    assert f"Job {jobs.mixed} has 2 parts: 2 completed." in head(jobs.mixed)
    whole = head(jobs.array)
    assert f"Job {jobs.array} has {TASKS} parts: " in whole
    assert f"{TASKS // 5} failed" in whole
    assert "with exit code 1." in head(f"{jobs.array}_5")
    again = jobs.teho("report", jobs.again).stdout
    assert "Runs of this job" in again
    assert "queued again" in again


def test_steps_and_nodes_are_those_of_sacct(jobs: Jobs) -> None:
    report = jobs.json("report", jobs.steps)
    steps = {row["step"]: row for row in _table(report, "steps")}
    assert set(steps) == {"batch", "0", "1"}
    assert [steps[name]["tasks"] for name in ("batch", "0", "1")] == [1, 2, 2]
    names = [row["node"] for row in _table(jobs.json("report", jobs.nodes), "nodes")]
    assert len(names) == 2


def _table(report: Any, key: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = next(one for one in report["tables"] if one["key"] == key)["rows"]
    return found


def test_a_summary_in_the_database_gives_the_gpus(jobs: Jobs) -> None:
    node = jobs.must("sacct", "-X", "-n", "-P", "-j", jobs.long, "-o", "NodeList").strip()
    report = jobs.json("report", jobs.long)
    (gpu,) = _table(report, "gpus")
    assert (gpu["node"], gpu["gpu"], gpu["load_mean"], gpu["memory_max"]) == (node, 3, 0.0, GIB)
    assert "Jobstats" in next(f["value"] for f in report["facts"] if f["key"] == "source")


def test_the_digest_adds_up_to_what_sacct_has(jobs: Jobs) -> None:
    digest = jobs.json("digest", "--since", "1d", "--all")
    rows = [row for row in jobs.sacct("--duplicates").values() if row[0] != "PENDING"]
    text = jobs.must("sacct", "-X", "-n", "-P", "--duplicates", "-o", "State,ElapsedRaw,AllocCPUS")
    every = [line.split("|") for line in text.splitlines()]
    ran = [(int(elapsed), int(cores)) for state, elapsed, cores in every if state != "PENDING"]
    assert digest["used"]["core_hours"] == pytest.approx(sum(s * n for s, n in ran) / 3600)
    assert digest["jobs"] == len(ran) >= len(rows)
    # All of them were short, apart from the sweep that failed again and again.
    assert [one["kind"] for one in digest["waste"]] == ["fails_at_start"]
    assert digest["waste"][0]["jobs"] == TASKS // 5


def test_a_job_that_runs_has_the_figures_of_sstat(jobs: Jobs) -> None:
    number = jobs.send(f"exec {sys.executable} -c 'while True: pass'", *GPU)
    try:
        end_s = time.monotonic() + 120
        facts: dict[str, Any] = {}
        # Slurm takes a sample of each task every 5 s here.
        # A missing figure is an object that says why.
        while not all(
            isinstance(facts.get(key), int | float) and facts[key] > 0
            for key in ("memory_peak_bytes", "cpu_used_s")
        ):
            assert time.monotonic() < end_s, facts
            time.sleep(1)
            facts = {one["key"]: one["value"] for one in jobs.json("report", number)["facts"]}
        step = f"{number}.batch"
        row = jobs.must("sstat", "-n", "-P", "-j", step, "-o", "AveCPU,MaxRSS").strip()
        text = jobs.teho("report", number).stdout
    finally:
        jobs.must("scancel", number)
    jobs._until(lambda: not jobs._unfinished())
    assert facts["source"] == "sacct and sstat"
    cpu, peak = row.split("|")
    # sstat was asked again, some seconds later.
    assert 0 < facts["cpu_used_s"] <= _seconds(cpu) + 1
    assert facts["memory_peak_bytes"] == pytest.approx(int(peak.rstrip("K")) * 1024, rel=0.2)
    assert "The figures show the use of cores and memory until now." in " ".join(text.split())


@pytest.mark.xdist_group("grid_engine")
def test_a_job_of_grid_engine_is_reported_from_qacct(arc4: GridEngineTwin, tmp_path: Path) -> None:
    folder = arc4.home / "accounted"
    folder.mkdir()
    user = arc4.home.stat()
    os.chown(folder, user.st_uid, user.st_gid)
    (folder / "job.sh").write_text("python3 -c 'sum(range(30_000_000))'; exit 4\n")
    argv = ("qsub", "-cwd", "-sync", "y", "-l", "h_rt=900,h_vmem=1G", "-N", "sum", "job.sh")
    done = arc4.ask(*argv, cwd=folder, patience_s=420)
    (number,) = re.findall(r"Your job (\d+)", done.stdout)
    environment = {**arc4.environment, "TEHO_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    end_s = time.monotonic() + 60
    # Without the file of the accounting, qacct says so on stdout.
    while "jobnumber" not in (record := arc4.ask("qacct", "-j", number).stdout):
        assert time.monotonic() < end_s
        time.sleep(0.5)

    def teho(*arguments: str) -> Any:
        argv = [*TEHO, *arguments, "--format", "json"]
        variables = {**os.environ, **environment}
        ran = subprocess.run(argv, capture_output=True, text=True, env=variables, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    facts = {fact["key"]: fact["value"] for fact in teho("report", number)["facts"]}
    cpu = re.search(r"^cpu +([\d.]+)s?$", record, re.MULTILINE)
    wall = re.search(r"^ru_wallclock +([\d.]+)s?$", record, re.MULTILINE)
    assert cpu
    assert wall
    assert facts["source"] == "qacct"
    assert facts["cpu_used_s"] == float(cpu[1])
    assert facts["elapsed_s"] == float(wall[1])
    assert facts["state_words"] == "FAILED (exit code 4)"
    owner = re.search(r"^owner +(\S+)", record, re.MULTILINE)
    assert owner
    listed = teho("jobs", "--since", "1d", "--user", owner[1])["jobs"]
    (line,) = [one for one in listed if one["id"] == number]
    assert (line["name"], line["state"], line["exit_code"]) == ("sum", "failed", 4)
    assert teho("digest", "--since", "1d", "--all")["jobs"] >= 1


@pytest.mark.xdist_group("grid_engine")
def test_a_running_job_of_grid_engine_has_the_figures_of_qstat(
    arc4: GridEngineTwin, tmp_path: Path
) -> None:
    folder = arc4.home / "running"
    folder.mkdir()
    user = arc4.home.stat()
    os.chown(folder, user.st_uid, user.st_gid)
    (folder / "job.sh").write_text("exec python3 -c 'while True: pass'\n")
    argv = ("qsub", "-terse", "-cwd", "-l", "h_rt=900,h_vmem=1G", "-N", "busy", "job.sh")
    number = arc4.ask(*argv, cwd=folder).stdout.strip()
    owner = pwd.getpwuid(user.st_uid).pw_name
    environment = {**os.environ, **arc4.environment, "LOGNAME": owner}
    environment |= {"TEHO_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}

    def teho(*arguments: str) -> dict[str, Any]:
        argv = [*TEHO, *arguments, "--format", "json"]
        ran = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    try:
        end_s = time.monotonic() + 120
        while not re.search(r"usage .*cpu=\d\d:(?!00:00)", arc4.ask("qstat", "-j", number).stdout):
            assert time.monotonic() < end_s
            time.sleep(0.5)
        shown = teho("top", number, "--once")
        facts = {fact["key"]: fact["value"] for fact in shown["facts"]}
        assert (shown["state"], facts["source"]) == ("running", "qstat")
        assert 0 < facts["cores_used"] <= 1.5
        assert 0 <= facts["age_s"] < 30
        assert facts["memory_peak_bytes"]["type"] == "missing"
        assert "Grid Engine cannot start a recorder" in shown["notes"][0]
        report = {fact["key"]: fact["value"] for fact in teho("report", number)["facts"]}
        assert report["source"] == "qstat"
        assert report["cpu_used_s"] >= 1
    finally:
        arc4.ask("qdel", number)
