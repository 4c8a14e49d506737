"""Every launcher on a twin of Puhti: two nodes of up to four GPUs, a real training on each rank.

Each rank must end with the gradient of a single process that trains on the same batches, and be
given the environment of its launcher's golden file.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from launched import PROGRAMS, Launched, Stage, jax_gradient
from slurm_twin import SlurmTwin

from drawn import cases_that_run
from support import lacks_framework
from teho.clusters.catalogue import load_cluster

SCRIPT = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=10 --gres=gpu:v100:{gpus}
#SBATCH --nodes={nodes} --ntasks-per-node={tasks} --output={notes}.out
#SBATCH --job-name=one-after-the-other --dependency=singleton
export NOTES={notes}
{line}
"""
ACCELERATE_LAUNCH = """\
srun teho launch -- bash -c 'accelerate launch --multi_gpu \\
  --num_machines $WORLD_SIZE --machine_rank $RANK \\
  --num_processes $((SLURM_GPUS_ON_NODE * WORLD_SIZE)) \\
  --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT with_accelerate.py "$NOTES"'"""


class Case(NamedTuple):
    """A batch job."""

    line: str
    tasks: int
    """That Slurm starts on each node: one, where a launcher of its own starts the ranks."""
    nodes: int = 2
    framework: str = "torch"
    ranks: int = 4
    """On each node."""
    gpus: int = 4
    """Of each node; fewer where one case with all of them suffices."""


CASES = {
    "srun": Case('srun teho launch -- python ddp.py "$NOTES"', 4),
    "torchrun-one-node": Case(
        'srun teho launch -- torchrun ddp.py "$NOTES"', 1, 1, ranks=2, gpus=2
    ),
    "torchrun": Case('srun teho launch -- torchrun ddp.py "$NOTES"', 1, ranks=2, gpus=2),
    "accelerate": Case(
        'srun teho launch -- python with_accelerate.py "$NOTES"',
        1,
        framework="accelerate",
        ranks=1,
        gpus=1,
    ),
    "accelerate-launch": Case(ACCELERATE_LAUNCH, 1, framework="accelerate", ranks=2, gpus=2),
    "deepspeed": Case(
        'srun teho launch -- python with_deepspeed.py "$NOTES"',
        1,
        framework="deepspeed",
        ranks=1,
        gpus=1,
    ),
    "jax": Case('srun teho launch -- python with_jax.py "$NOTES"', 1, framework="jax", ranks=1),
    "mpirun": Case('mpirun teho launch -- python ddp.py "$NOTES"', 2, ranks=2, gpus=2),
}
DRAWN = pytest.mark.drawn(1, always=("srun",))


def _why_not(name: str) -> str:
    if name == "mpirun" and shutil.which("mpirun") is None:
        return "no mpirun here; tests/debian-packages.sh installs it"
    return lacks_framework(CASES[name].framework)


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, slurm: None, stage: Stage) -> dict[str, Launched]:
    """Run the drawn jobs, one after another: else chance would choose the GPUs of those beside."""
    with (
        tempfile.TemporaryDirectory(prefix="twin-") as folder,
        SlurmTwin(load_cluster("puhti", {}), Path(folder), live={"gpu": 2}, asleep=False) as twin,
    ):
        twin.environment.update(stage.environment)
        drawn = [str(name) for name in cases_that_run(request, "name")]
        jobs = {name: _submit(twin, stage, name) for name in drawn if not _why_not(name)}
        end_s = time.monotonic() + 900  # they take two minutes of a machine that does nothing else
        while left := twin.run("squeue", "-h").stdout.strip():
            assert time.monotonic() < end_s, left
            time.sleep(0.6)  # to ask Slurm is work for the cores on which the ranks run
    return {
        name: Launched(stage, name, (stage.folder / f"{name}.out").read_text()) for name in jobs
    }


def _submit(twin: SlurmTwin, stage: Stage, name: str) -> str:
    case = CASES[name]
    script = SCRIPT.format(
        nodes=case.nodes, tasks=case.tasks, gpus=case.gpus, notes=stage.notes(name), line=case.line
    )
    sent = twin.run("sbatch", "--parsable", f"--chdir={PROGRAMS}", stdin=script)
    assert sent.returncode == 0, sent.stderr
    return sent.stdout.strip()


@pytest.mark.parametrize("name", CASES)
def test_the_command_is_a_documented_one(name: str) -> None:
    page = (PROGRAMS.parents[1] / "docs" / "launch.md").read_text()
    assert re.sub(r'\w+\.py "\$NOTES"', "train.py", CASES[name].line) in page


@DRAWN
@pytest.mark.parametrize("name", CASES)
def test_every_rank_has_the_gradient_of_one_process(
    name: str, ended: dict[str, Launched], alone: Launched
) -> None:
    if reason := _why_not(name):
        pytest.skip(reason)
    case = CASES[name]
    expected = jax_gradient() if case.framework == "jax" else alone.gradients[0]
    ended[name].check_gradients(case.nodes * case.ranks, expected)


@DRAWN
@pytest.mark.parametrize("name", CASES)
def test_every_rank_gets_its_number(name: str, ended: dict[str, Launched]) -> None:
    if reason := _why_not(name):
        pytest.skip(reason)
    ended[name].check_ranks(CASES[name].nodes, CASES[name].ranks)
    ended[name].check_golden(name)
