"""This section shows how long `teho jobs` takes for 10,000 jobs, and `teho digest` for 100,000.

This benchmark does not run the real `sacct`: a small script (the *stand-in*) prints the rows of
generated jobs from a file. Each job has two steps. Half of the jobs have GPUs and a summary of
Jobstats. The stand-in needs only the time of `cat`. So the table shows the time of Teho without the
time of a real `sacct`. If `reportseff` is on PATH, it reads the same jobs: the stand-in then prints
the columns that `reportseff` asks for. `reportseff` prints the CPU, memory and GPU efficiency of
each job.

The last rows show whether `teho digest` finds the right waste. Of 100,000 other generated jobs,
10,000 have waste of a known amount (the *planted* waste): 1,000 jobs of each kind that `sacct` can
show. The other 90,000 jobs have no waste, or their figures do not show it: for example, short jobs,
jobs of whole nodes, and jobs without samples. A *wrongly accused* job has no planted waste, but the
digest counts waste for it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from common import CACHE, SCRIPTS, Figures, Row, interleave, measure_process, say, wall_ms_of
from planted_jobs import FAILS, KINDS, Planted, clean_job, wasteful_job
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
_AMOUNTS = tuple(name for name in Planted._fields if name.endswith("_hours"))
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
        *_found_waste(large),
    ]  # fmt: skip


def _found_waste(count: int) -> Iterator[Row]:
    """Compare the waste that Teho finds with the planted waste."""
    site = _site(count, "planted")
    truth = {
        job_id: Planted(*planted)
        for job_id, planted in json.loads((site / "truth").read_text()).items()
    }
    digest = _printed("digest", site)
    found = {one["kind"]: one for one in digest["waste"]}
    kinds = found.keys() | {planted.kind for planted in truth.values()}
    for name, words in zip(_AMOUNTS, ("GPU-hours", "core-hours", "GiB-hours"), strict=True):
        planted_hours = Counter[str]()
        for planted in truth.values():
            planted_hours[planted.kind] += getattr(planted, name)
        total = sum(planted_hours.values())
        differences = (
            abs((found[kind]["amounts"][name] if kind in found else 0.0) - planted_hours[kind])
            for kind in kinds
        )
        yield Row(
            what=f"planted waste of {total:,.0f} {words}: differences of all kinds", unit="%",
            ours=Figures.of(100 * sum(differences) / total), budget=0.1,
        )  # fmt: skip
    accused, missed = _mistakes(digest, _printed("jobs", site)["jobs"], truth)
    yield Row(what=f"wrongly accused jobs, of {count - len(truth):,} without waste", unit="",
              ours=Figures.of(accused), budget=0)  # fmt: skip
    yield Row(what=f"missed jobs, of {len(truth):,} with waste", unit="",
              ours=Figures.of(missed), budget=0)  # fmt: skip


def _printed(command: str, site: Path) -> dict[str, Any]:
    argv = [str(SCRIPTS / "teho"), command, "--all", "--since", f"{_DAYS + 1}d", "--format", "json"]
    answer = subprocess.run(argv, env=_with(site), check=True, capture_output=True)
    printed: dict[str, Any] = json.loads(answer.stdout)
    return printed


def _mistakes(
    digest: dict[str, Any], lines: Iterable[dict[str, Any]], truth: dict[str, Planted]
) -> tuple[int, int]:
    """Return the number of jobs with waste that was not planted, and without planted waste."""
    accused = missed = 0
    for line in lines:
        planted = truth.get(line["id"])
        # Only a digest can see that jobs failed again and again.
        expected = {planted.kind} - {FAILS} if planted else set()
        accused += bool(set(line["waste"]) - expected)
        missed += bool(expected - set(line["waste"]))
    failed = sum(one["jobs"] for one in digest["waste"] if one["kind"] == FAILS)
    more = failed - sum(planted.kind == FAILS for planted in truth.values())
    return accused + max(0, more), missed + max(0, -more)


def _with(site: Path) -> dict[str, str]:
    home = {name: str(site / "home") for name in ("TEHO_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")}
    return {**os.environ, **home, "PATH": f"{site}:{os.environ['PATH']}"}


def _site(count: int, kind: str = "any") -> Path:
    """Return a folder with a stand-in for sacct that prints this number of jobs.

    Args:
        count: of the jobs.
        kind: `any`, or `planted` for jobs of which the waste is known.
    """
    say(f"generating {count:,} jobs")
    # In a process of its own: the memory of this one would count for the programs that it starts.
    subprocess.run([sys.executable, __file__, str(count), kind], check=True)
    return _folder(count, kind)


def _folder(count: int, kind: str) -> Path:
    return CACHE / f"accounting-{kind}-{count}"


def _generate(count: int, kind: str) -> None:
    """Write the rows of the jobs, and the stand-in."""
    site = _folder(count, kind)
    site.mkdir(parents=True, exist_ok=True)
    ours, theirs = site / "rows", site / "reportseff"
    draw, now = random.Random(count), int(time.time()) - 3600
    if kind == "planted":
        _plant(count, site, draw, now)
    else:
        with ours.open("w") as file, theirs.open("w") as other:
            _write(count, draw, now, file, other)
    _write_stubs(site)


def _write(count: int, draw: random.Random, now: int, file: TextIO, other: TextIO) -> None:
    for number in range(count):
        records = _job(str(1_000_000 + number), draw, now)
        file.write(rows(*records))
        other.writelines(_for_reportseff(record) for record in records)


def _plant(count: int, site: Path, draw: random.Random, now: int) -> None:
    """Write the rows of jobs of which a tenth has waste, and this waste."""
    truth: dict[str, Planted] = {}
    wasteful = count // 10 // KINDS * KINDS
    numbers = [str(1_000_000 + number) for number in range(count)]
    is_wasteful = set(numbers[:wasteful])
    draw.shuffle(numbers)
    with (site / "rows").open("w") as file:
        for number in numbers:
            # The digest has the jobs that ended in the period, so each job is in it.
            end = now - draw.randrange((_DAYS - 2) * 86400)
            if number not in is_wasteful:
                file.write(rows(*clean_job(number, draw, end)))
                continue
            records, truth[number] = wasteful_job(number, draw, end)
            file.write(rows(*records))
    (site / "truth").write_text(json.dumps(truth))


def _write_stubs(site: Path) -> None:
    stub = site / "sacct"
    stub.write_text(
        _STUB.format(ours=site / "rows", theirs=site / "reportseff", columns=" ".join(_REPORTSEFF))
    )
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
    _generate(int(sys.argv[1]), sys.argv[2])
