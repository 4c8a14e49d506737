"""The whole command `teho report` for a run of 3 days on 64 nodes with 8 GPUs each.

The recording is generated (benchmarks/generate.py). The benchmark generates the samples of one
node, and Teho's own code makes rows from these samples. In a long run, this code merges several
samples into one row. The benchmark then changes the rows of this node slightly to get the rows of
the 63 other nodes. The benchmark joins the rows of each node into one file, as a recorder does.
`teho report` writes its output to a file. The files of the recording are already in the file
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


def measure(*, quick: bool) -> list[Row]:
    nodes, days = (2, 0.02) if quick else (64, 3.0)
    with stub_environment() as env:
        home = generated(nodes, days, env)
        env["TEHO_HOME"] = str(home)
        calls = {
            form: partial(measure_process, [SCRIPTS / "teho", "report", "--format", form], env)
            for form in _FORMATS
        }
        ended = interleave(calls, 1 if quick else 5)
    rows = []
    for form in _FORMATS:
        times = Figures.of(*(one.wall_s for one in ended[form]))
        peaks = Figures.of(*(one.peak_bytes / 1e6 for one in ended[form]))
        what = f"`teho report --format {form}`"
        rows += [
            Row(what=f"{what}, wall time", unit="s", ours=times, budget=2),
            Row(what=f"{what}, peak memory", unit="MB", ours=peaks, budget=500),
            Row(what=f"{what}, size of the output", unit="MB", ours=_output_mb(form, env)),
        ]
    size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
    return [*rows, Row(what="size of the recording", unit="MB", ours=Figures.of(size / 1e6))]


def _output_mb(form: str, env: Mapping[str, str]) -> Figures:
    argv = [str(SCRIPTS / "teho"), "report", "--format", form]
    done = subprocess.run(argv, env=dict(env), stdout=subprocess.PIPE, check=True)
    return Figures.of(len(done.stdout) / 1e6)


def generated(nodes: int, days: float, env: Mapping[str, str]) -> Path:
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
    subprocess.run([*argv, "--days", str(days), "--nodes", str(nodes)], env=dict(env), check=True)
    return unborn.rename(home)
