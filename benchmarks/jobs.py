"""This section shows how long `teho jobs` takes for 10,000 jobs, and `teho digest` for 100,000.

This benchmark does not run the real `sacct`: a small script (the *stand-in*) prints the rows of
generated jobs from a file. Each job has two steps. Half of the jobs have GPUs and a summary of
Jobstats. The stand-in needs only the time of `cat`. So the table shows the time of Teho without the
time of a real `sacct`. If `reportseff` is on PATH, it reads the same jobs: the stand-in then prints
the columns that `reportseff` asks for. `reportseff` prints the CPU, memory and GPU efficiency of
each job.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from common import CACHE, SCRIPTS, Figures, Row, interleave, measure_process, say, wall_ms_of
from sacct_rows import job, js1, rows, step

_LIST, _DIGEST = 10_000, 100_000
_DAYS = 29
_STUB = """#!/bin/bash
case "$*" in
*helpformat*) echo {columns};;
*AllocCPUS*) exec cat '{theirs}';;
*) exec cat '{ours}';;
esac
"""
_REPORTSEFF = (
    "AdminComment", "AllocCPUS", "Elapsed", "JobID", "JobIDRaw", "MaxRSS", "NNodes", "NTasks",
    "ReqMem", "State", "Timelimit", "TotalCPU",
)  # fmt: skip
"""Columns that reportseff 2.10 asks for, in their order."""
_PARTITION = "PartitionName=gpu\n   DefaultTime=00:15:00 MaxTime=3-00:00:00\n"


def measure(*, quick: bool) -> list[Row]:
    few = _site(100 if quick else _LIST)
    many = _site(1000 if quick else _DIGEST)
    teho = str(SCRIPTS / "teho")
    since = ("--all", "--since", f"{_DAYS + 1}d")
    csv = [teho, "jobs", *since, "--format", "csv", "-o"]
    # What this process reads and keeps would count for the memory of the next program.
    quiet = ["sh", "-c", "sacct > /dev/null"]
    calls = {
        "jobs": partial(measure_process, [teho, "jobs", *since], _with(few)),
        "csv": partial(measure_process, [*csv, str(few / "jobs.csv")], _with(few)),
        "digest": partial(measure_process, [teho, "digest", *since], _with(many)),
        "cat 10": partial(measure_process, quiet, _with(few)),
        "cat 100": partial(measure_process, quiet, _with(many)),
    }
    reportseff = shutil.which("reportseff")
    if reportseff:
        argv = [reportseff, "--user", "anna", "--since", f"d={_DAYS + 1}", "--format", "+GPU"]
        calls["reportseff"] = partial(measure_process, argv, _with(few))
    say(f"jobs: {', '.join(calls)}")
    ended = interleave(calls, 1 if quick else 5)
    wall_ms = wall_ms_of(ended)
    cpu_ms = {
        name: Figures.of(*(1000 * one.cpu_s for one in found)) for name, found in ended.items()
    }
    cpu_peer = (
        {"peer": "reportseff", "theirs": cpu_ms["reportseff"]} if "reportseff" in calls else {}
    )
    peer = {"peer": "reportseff", "theirs": wall_ms["reportseff"]} if "reportseff" in calls else {}
    count, large = (100, 1000) if quick else (_LIST, _DIGEST)
    return [
        Row(what=f"`teho jobs` with {count:,} jobs, wall time", unit="ms", ours=wall_ms["jobs"],
            budget=3000, **peer),
        Row(what=f"`teho jobs --format csv` with {count:,} jobs, wall time", unit="ms",
            ours=wall_ms["csv"], peer="the stand-in for `sacct`", theirs=wall_ms["cat 10"],
            budget=3000),
        Row(what=f"`teho digest` with {large:,} jobs, wall time", unit="ms",
            ours=wall_ms["digest"], peer="the stand-in for `sacct`", theirs=wall_ms["cat 100"],
            budget=10_000),
        Row(what=f"`teho jobs` with {count:,} jobs, CPU time", unit="ms",
            ours=cpu_ms["jobs"], **cpu_peer),
        Row(what=f"`teho digest` with {large:,} jobs, CPU time", unit="ms", ours=cpu_ms["digest"]),
        Row(what=f"`teho digest` with {large:,} jobs, peak memory", unit="MB",
            ours=Figures.of(*(one.peak_bytes / 1e6 for one in ended["digest"]))),
    ]  # fmt: skip


def _with(site: Path) -> dict[str, str]:
    home = {name: str(site / "home") for name in ("TEHO_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    return {**os.environ, **home, "PATH": f"{site}:{os.environ['PATH']}"}


def _site(count: int) -> Path:
    """Return a folder with a stand-in for sacct that prints this number of jobs."""
    say(f"generating {count:,} jobs")
    # In a process of its own: the memory of this one would count for the programs that it starts.
    subprocess.run([sys.executable, __file__, str(count)], check=True)
    return _folder(count)


def _folder(count: int) -> Path:
    return CACHE / f"accounting-{count}"


def _generate(count: int) -> None:
    """Write the rows of the jobs, and the stand-in."""
    site = _folder(count)
    site.mkdir(parents=True, exist_ok=True)
    ours, theirs = site / "rows", site / "reportseff"
    draw, now = random.Random(count), int(time.time()) - 3600
    with ours.open("w") as file, theirs.open("w") as other:
        for number in range(count):
            records = _job(str(1_000_000 + number), draw, now)
            file.write(rows(*records))
            other.writelines(_for_reportseff(record) for record in records)
    stub = site / "sacct"
    stub.write_text(_STUB.format(ours=ours, theirs=theirs, columns=" ".join(_REPORTSEFF)))
    control = site / "scontrol"
    control.write_text(f"#!/bin/bash\ncat <<'EOF'\n{_PARTITION}EOF\n")
    for path in (stub, control):
        path.chmod(0o755)


def _job(number: str, draw: random.Random, now: int) -> list[dict[str, str]]:
    elapsed_s, cores = draw.randrange(20, 80_000), draw.choice([1, 4, 10, 40])
    gpus, end = draw.choice([0, 0, 1, 4]), now - draw.randrange(_DAYS * 86400)
    cpu = _clock(cores * elapsed_s * draw.uniform(0.05, 1))
    gib = 1 << 30
    node: dict[str, object] = {
        "cpus": cores,
        "total_time": cores * elapsed_s / 2,
        "used_memory": 9 * gib,
        "total_memory": 40 * gib,
        "gpu_utilization": {str(gpu): round(draw.uniform(0, 100), 1) for gpu in range(gpus)},
        "gpu_used_memory": {str(gpu): 10 * gib for gpu in range(gpus)},
        "gpu_total_memory": {str(gpu): 32 * gib for gpu in range(gpus)},
    }
    times = {
        "Start": str(end - elapsed_s),
        "End": str(end),
        "ElapsedRaw": str(elapsed_s),
        "TotalCPU": cpu,
    }
    whole = job(
        number, elapsed_s=elapsed_s, cores=cores, gpus=gpus,
        State=draw.choice(["COMPLETED"] * 8 + ["FAILED", "TIMEOUT"]),
        JobName=f"{draw.choice(['train', 'sweep', 'bash'])}{draw.randrange(50)}",
        User=draw.choice(["anna", "bo", "cleo"]),
        AdminComment=js1(r01g01=node) if gpus else "",
        Submit=str(end - elapsed_s - 600),
        **times,
    )  # fmt: skip
    batch = step(f"{number}.batch", peak=f"{draw.randrange(1, 30_000)}M", **times)
    return [
        whole,
        batch,
        step(f"{number}.extern", peak="100K", **times | {"TotalCPU": "00:00.001"}),
    ]


def _for_reportseff(record: dict[str, str]) -> str:
    """Return the row of a job in the columns of reportseff."""
    elapsed = _clock(int(record["ElapsedRaw"]))
    cells = {
        **record,
        "AllocCPUS": record["AllocTRES"].partition("cpu=")[2].partition(",")[0],
        "Elapsed": elapsed,
        "JobIDRaw": record["JobID"],
        "ReqMem": "40G",
        "Timelimit": _clock(2 * int(record["ElapsedRaw"])),
    }
    return "^|^".join([*(cells.get(name, "") for name in _REPORTSEFF), "\n"])


def _clock(seconds: float) -> str:
    days, rest = divmod(round(seconds), 86400)
    text = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{text}" if days else text


if __name__ == "__main__":
    _generate(int(sys.argv[1]))
