"""A job with two GPUs on a real Grid Engine of ARC4's shape: it has one slot and twenty cores.

The machine has fewer cores, so its number of cores is the limit of what runs here.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from grid_engine_twin import PROGRAMS as GRID_ENGINE
from grid_engine_twin import GridEngineTwin

from support import TEHO

pytestmark = pytest.mark.xdist_group("grid_engine")

HERE = len(os.sched_getaffinity(0))
READ = """
import json, os
from teho.cli.tune import _room
from teho.experiment.placement import this_machine
from teho.schedulers.allocation import read_allocation
mine = frozenset(range(40))
found = read_allocation(os.environ, mine, None, None)
print(json.dumps({
    "slots": os.environ["NSLOTS"], "cores": found.cores_asked, "gpus": found.gpus_held,
    "memory_gib": found.memory_limit_bytes / 2**30, "with_gpus": found.with_gpus,
    "room": _room().cores, "machine": len(this_machine().logical_cores),
}))
"""
SCRIPT = """\
#!/bin/bash
#$ -V -cwd -l h_rt=0:15:0 -l coproc_v100=2 -o {folder}/out -e {folder}/errors
export {variables}
{python} -c {read} > {folder}/facts.json
{teho} launch -- sh -c 'echo "$OMP_NUM_THREADS"' > {folder}/threads
{teho} run -- true > {folder}/report 2>&1
{teho} doctor --format json > {folder}/doctor.json
exit 0
"""


@pytest.fixture(scope="module")
def folder(arc4: GridEngineTwin) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gpu-cores-") as name:
        folder = Path(name)
        source = Path(__file__).parents[2] / "src"
        text = SCRIPT.format(
            folder=folder, python=sys.executable, teho=shlex.join(TEHO), read=shlex.quote(READ),
            variables=f"CUDA_VISIBLE_DEVICES=0,1 TEHO_CLUSTER=arc4 TEHO_HOME={folder} "
            f"PYTHONPATH={source}",
        )  # fmt: skip
        (folder / "job.sh").write_text(text)
        # As root: the twin's user may not read this Python.
        qsub = str(GRID_ENGINE / "qsub")
        done = arc4.ask(qsub, "-sync", "y", "job.sh", cwd=folder, patience_s=300.0)
        said = (folder / "errors").read_text() if (folder / "errors").exists() else ""
        assert done.returncode == 0, done.stdout + done.stderr + said
        yield folder


def test_cores_and_memory_come_with_the_gpus(folder: Path) -> None:
    assert json.loads((folder / "facts.json").read_text()) == {
        "slots": "1",
        "cores": 20,
        "gpus": 2,
        "memory_gib": 96.0,
        "with_gpus": ["cores", "memory"],
        "room": min(20, HERE),
        "machine": min(20, HERE),
    }


def test_a_task_has_a_thread_for_each_core(folder: Path) -> None:
    assert (folder / "threads").read_text().split() == [str(min(20, HERE))]


def test_the_recording_has_the_cores(folder: Path) -> None:
    (path,) = folder.glob("runs/*/nodes/*.json")
    allocation = json.loads(path.read_text())["allocation"]
    assert (allocation["cores_asked"], allocation["gpus_held"]) == (20, 2)


def test_the_doctor_compares_with_the_cores(folder: Path) -> None:
    found = json.dumps(json.loads((folder / "doctor.json").read_text()))
    assert f"only {HERE} of the 20 cores" in found
