"""This section shows what `teho report` costs for runs on 64 and 1,250 nodes with 8 GPUs each.

The run on 64 nodes takes 3 days. The run on 1,250 nodes takes one day and has 10,000 GPUs. The
recordings are generated (benchmarks/generate.py). The benchmark generates the samples of one node,
and Teho's own code makes rows from these samples. In a long run, this code merges several samples
into one row. The benchmark then changes the rows of this node slightly to get the rows of the other
nodes. The benchmark joins the rows of each node into one file, as a recorder does. Only 16 of the
1,250 nodes have rows of their own. The files of the other nodes are links to the files of these 16
nodes. Four of the 1,250 nodes are slow: their GPUs are half as busy. Four other nodes died in the
middle of the run, so their rows end there, and are not joined. Four nodes have no recording.
`teho report` writes its output to a file. The files of the recordings are already in the file
system's cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import (
    CACHE,
    ROOT,
    SCRIPTS,
    Figures,
    Row,
    interleave,
    measure_process,
    say,
    stub_environment,
)

_HERE = Path(__file__).parent
_MADE_BY = (
    _HERE / "generate.py",
    *(ROOT / "src" / "teho" / path for path in ("model/metric.py", "observe/sampler.py")),
    *(
        ROOT / "src" / "teho" / "store" / f"{name}.py"
        for name in ("schema", "journal", "pack", "overview", "figures")
    ),
)
_FORMATS = ("text", "json", "html")


class _Big(NamedTuple):
    """A run of many nodes."""

    title: str
    nodes: int
    days: float
    distinct: int
    """Number of healthy nodes with rows of their own; 0: all."""
    bad: int
    """Number of slow nodes, of nodes that died, and of nodes without a recording."""
    budget_s: float
    budget_mb: float


_RUNS = (
    _Big("64 nodes, 3 days", 64, 3.0, 0, 0, 2, 500),
    _Big("1,250 nodes, 1 day", 1250, 1.0, 16, 4, 10, 1000),
)
_QUICK = (
    _Big("64 nodes, 3 days", 2, 0.02, 0, 0, 2, 500),
    _Big("1,250 nodes, 1 day", 8, 0.02, 2, 1, 10, 1000),
)


def measure(*, quick: bool) -> list[Row]:
    runs, rounds = (_QUICK, 1) if quick else (_RUNS, 5)
    return [row for one in runs for row in _of_run(one, rounds=rounds)]


def _of_run(big: _Big, *, rounds: int) -> list[Row]:
    with stub_environment() as env:
        home = generated(big.nodes, big.days, env, big.distinct, big.bad)
        env["TEHO_HOME"] = str(home)
        calls = {
            form: partial(measure_process, [SCRIPTS / "teho", "report", "--format", form], env)
            for form in _FORMATS
        }
        ended = interleave(calls, rounds)
        sizes = {form: _output_mb(form, env) for form in _FORMATS}
    rows = []
    for form in _FORMATS:
        times = Figures.of(*(one.wall_s for one in ended[form]))
        peaks = Figures.of(*(one.peak_bytes / 1e6 for one in ended[form]))
        what = f"{big.title}: `teho report --format {form}`"
        rows += [
            Row(what=f"{what}, wall time", unit="s", ours=times, budget=big.budget_s),
            Row(what=f"{what}, peak memory", unit="MB", ours=peaks, budget=big.budget_mb),
            Row(what=f"{what}, size of the output", unit="MB", ours=sizes[form]),
        ]
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    what = f"{big.title}: size of the recording"
    rows.append(Row(what=what, unit="MB", ours=Figures.of(size / 1e6)))
    if big.bad:
        lost = [f"r01g{number:02d}" for number in range(big.nodes - 2 * big.bad, big.nodes)]
        named = sum(name in ended["text"][0].output for name in lost)
        what = (
            f"{big.title}: nodes that died or have no recording, and that the report as text names"
        )
        verdict = "yes" if named == len(lost) else "**no**"
        rows.append(Row(what=f"{what}, of {len(lost)}", unit="nodes", ours=Figures.of(named),
                        verdict=verdict))  # fmt: skip
    return rows


def _output_mb(form: str, env: Mapping[str, str]) -> Figures:
    argv = [str(SCRIPTS / "teho"), "report", "--format", form]
    done = subprocess.run(argv, env=dict(env), stdout=subprocess.PIPE, check=True)
    return Figures.of(len(done.stdout) / 1e6)


def generated(
    nodes: int, days: float, env: Mapping[str, str], distinct: int = 0, bad: int = 0
) -> Path:
    """Return a home with the recording. It is generated again if one of `_MADE_BY` changed."""
    stamp = hashlib.sha256(b"".join(path.read_bytes() for path in _MADE_BY)).hexdigest()[:12]
    home = CACHE / f"{nodes}-nodes-{days:g}-days-{stamp}"
    if home.exists():
        return home
    say(f"generating {nodes} nodes, {days:g} days (kept in {CACHE})")
    CACHE.mkdir(mode=0o700, exist_ok=True)
    for stale in CACHE.glob(f"{nodes}-nodes-{days:g}-days-*"):
        shutil.rmtree(stale)
    unborn = CACHE / f".{home.name}.{os.getpid()}"
    # A separate process: otherwise its memory would count as the report's peak memory.
    argv = [sys.executable, str(_HERE / "generate.py"), str(unborn)]
    argv += ["--days", str(days), "--nodes", str(nodes)]
    argv += ["--distinct", str(distinct), "--bad", str(bad)]
    subprocess.run(argv, env=dict(env), check=True)
    return unborn.rename(home)
