"""Launchers in a parallel environment of Grid Engine: mpirun, and torchrun on the one node."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from grid_engine_twin import PROGRAMS as GRID_ENGINE
from grid_engine_twin import GridEngineTwin, started, why_not
from launched import PROGRAMS, Launched, Stage, train_alone

from teho.clusters.catalogue import load_cluster

pytestmark = pytest.mark.xdist_group("grid_engine")

CASES = {
    "grid-engine-mpirun": 'mpirun teho launch -- python ddp.py "$NOTES"',
    "grid-engine-torchrun": 'teho launch -- torchrun --nproc-per-node=$NSLOTS ddp.py "$NOTES"',
}
SCRIPT = """\
#!/bin/bash
#$ -V -l h_rt=0:15:0 -pe smp 2 -wd {programs} -o {notes}.out -j y
export NOTES={notes}
{line}
"""


@pytest.fixture(scope="module")
def stage(torch_python: Path) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="launch-") as folder:
        yield Stage(Path(folder), torch_python)


@pytest.fixture(scope="module")
def twin() -> Iterator[GridEngineTwin]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with started(load_cluster("arc4", {})) as one:
        yield one


def test_ranks_in_a_parallel_environment(stage: Stage, twin: GridEngineTwin) -> None:
    expected = train_alone(stage).gradients[0]
    for name, line in CASES.items():
        script = stage.folder / f"{name}.sh"
        script.write_text(SCRIPT.format(programs=PROGRAMS, notes=stage.notes(name), line=line))
        # As root, not as the twin's user: she may not read this Python.
        sent = twin.ask(
            str(GRID_ENGINE / "qsub"), "-sync", "y", str(script), environment=stage.environment
        )
        output = Path(f"{stage.folder / name}.out")
        launched = Launched(
            stage, name, sent.stdout + sent.stderr + (output.read_text() if output.exists() else "")
        )
        launched.check_gradients(2, expected)
        launched.check_ranks(1, 2)
        launched.check_golden(name)
