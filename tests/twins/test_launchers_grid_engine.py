"""Launchers in Grid Engine's parallel environments: two slots on each of two nodes, and one node.

Each rank must end with the gradient of a single process that trains on the same batches, and be
given the environment of its launcher's golden file.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from grid_engine_twin import PROGRAMS as GRID_ENGINE
from grid_engine_twin import GridEngineTwin, started, why_not
from launched import PROGRAMS, Launched, Stage
from node_namespaces import why_no_nodes

from teho.clusters.catalogue import load_cluster

pytestmark = pytest.mark.xdist_group("grid_engine")

NODES = ("node01.arc4.leeds.ac.uk", "node02.arc4.leeds.ac.uk")
MPIRUN_TORCHRUN = """\
mpirun --map-by ppr:1:node --bind-to none \\
  teho launch -- torchrun --nproc-per-node=2 ddp.py "$NOTES\""""


class Case(NamedTuple):
    """A job."""

    line: str
    slots: str = "ib 4"
    nodes: int = 2
    ranks: int = 2
    """On each node."""


CASES = {
    "grid-engine-mpirun": Case('mpirun teho launch -- python ddp.py "$NOTES"'),
    "grid-engine-torchrun": Case(MPIRUN_TORCHRUN),
    "grid-engine-torchrun-one-node": Case(
        'teho launch -- torchrun --nproc-per-node=2 ddp.py "$NOTES"', "smp 2", nodes=1
    ),
}
RECORDED = 'mpirun -x TEHO_HOME="$NOTES" teho run -- teho launch -- sleep 1'
SCRIPT = """\
#!/bin/bash
#$ -V -l h_rt=0:15:0 -pe {slots} -wd {programs} -o {notes}.out -j y
export NOTES={notes}
{line}
"""


@pytest.fixture(scope="module")
def twin() -> Iterator[GridEngineTwin]:
    reason = why_not() or why_no_nodes()
    if not (reason or shutil.which("mpirun")):
        reason = "no mpirun here; tests/debian-packages.sh installs it"
    if reason:
        pytest.skip(reason)
    with started(load_cluster("arc4", {}), NODES) as one:
        yield one


@pytest.mark.parametrize("name", CASES)
def test_the_command_is_a_documented_one(name: str) -> None:
    page = (PROGRAMS.parents[1] / "docs" / "launch.md").read_text()
    assert re.sub(r'\w+\.py "\$NOTES"', "train.py", CASES[name].line) in page


@pytest.mark.drawn(1)
@pytest.mark.parametrize("name", CASES)
def test_ranks_in_a_parallel_environment(
    name: str, stage: Stage, twin: GridEngineTwin, alone: Launched
) -> None:
    case = CASES[name]
    launched = Launched(stage, name, _run(twin, stage, name, case))
    launched.check_gradients(case.nodes * case.ranks, alone.gradients[0])
    launched.check_ranks(case.nodes, case.ranks)
    launched.check_golden(name)


def test_mpirun_records_both_nodes(stage: Stage, twin: GridEngineTwin) -> None:
    said = _run(twin, stage, "recorded", Case(RECORDED))
    runs = [*(stage.folder / "recorded" / "runs").iterdir()]
    assert len(runs) == 1, said
    assert sorted(path.stem for path in runs[0].glob("nodes/*.json")) == [*NODES]
    assert sorted(path.stem for path in runs[0].glob("samples/*.parquet")) == [*NODES]
    ended = [json.loads(path.read_text()) for path in sorted(runs[0].glob("tasks/*.json"))]
    assert [(one["rank"], one["node"], one["end"]["exit_code"]) for one in ended] == [
        (rank, NODES[rank // 2], 0) for rank in range(4)
    ]


def _run(twin: GridEngineTwin, stage: Stage, name: str, case: Case) -> str:
    """Run a job to its end and return what was said."""
    notes = stage.notes(name)
    script, output = Path(f"{notes}.sh"), Path(f"{notes}.out")
    script.write_text(
        SCRIPT.format(slots=case.slots, programs=PROGRAMS, notes=notes, line=case.line)
    )
    sent = twin.ask(
        # As root, not as the twin's user: she may not read this Python.
        *(str(GRID_ENGINE / "qsub"), "-sync", "y", str(script)),
        environment=stage.environment,
        patience_s=300,
    )
    said = output.read_text(errors="replace") if output.exists() else ""
    return sent.stdout + sent.stderr + said
