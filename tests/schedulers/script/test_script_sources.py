"""Every script of the five documents that Teho began from, by one command each.

`tests/data/scripts/sources/NAME.source` holds the document's own lines, `NAME.sh` what the
command writes. What differs is listed here, line by line, with the reason.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from show.golden import check as check_golden
from teho.cli.group import teho as command_line

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "scripts" / "sources"

FILLED = "A placeholder of the document, filled in by the command."
MODULE = "The document loads the software by hand before; a job loads its own."
THREADS = "As the Alliance's document asks: as many threads as cores, from the allocation."
SRUN_CORES = "Since Slurm 22.05 srun does not take --cpus-per-task from the request."
ONE_NODE = "Said, so that it is the same in every script; a job of one task has one node anyway."
TASKS_A_NODE = "The same 8 tasks, said for each node: they cannot come to lie 5 and 3."
DASHES = "The document leaves the two dashes out: sbatch takes no option without them."
NO_TIME = "The document asks for no time; Teho writes its default of an hour."
COMMAND = "Where the document says that the job's commands go here."
TYPE = "Narval wants the type of its GPUs said, and calls --gres=gpu: deprecated."
CONTAINER = "The software of LUMI is a container, and the program runs inside it."
RECORDED = "`teho run` (--record) reads the same counters, and reports the energy at the end."

NO_REQUEUE = {"#SBATCH --no-requeue": "Slurm runs a job again from its beginning if a node fails."}
OMP = {"export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK": THREADS}
SRUN = {"export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK": SRUN_CORES}
PYTORCH = {"module purge": MODULE, "module load pytorch": MODULE}
WITH_HOROVOD = {"module purge": MODULE, "module load tensorflow/2.10": MODULE}
"""The document loads 2.7, with which Horovod is no longer expected to work (CSC, until 2026-06)."""
LUMI_PYTORCH = {
    "module purge": MODULE,
    "module use /appl/local/laifs/modules": MODULE,
    "module load lumi-aif-singularity-bindings": MODULE,
    "export SIF=/appl/local/laifs/containers/lumi-multitorch-latest.sif": MODULE,
}
ALLIANCE_PYTORCH = dict.fromkeys(
    [
        "module load StdEnv/2023 python",
        "srun -N $SLURM_NNODES -n $SLURM_NNODES bash -e << EOF || exit 1",
        "virtualenv --no-download $SLURM_TMPDIR/env",
        "source $SLURM_TMPDIR/env/bin/activate",
        "pip install --no-index torch",
        "EOF",
    ],
    MODULE,
)
FILLED_GONE = {
    "#SBATCH --account=<project>": FILLED,
    "srun python3 myprog.py <options>": FILLED,
}
FILLED_COME = {
    "#SBATCH --account=project_2001234": FILLED,
    "srun python3 myprog.py --epochs 3": FILLED,
}
LUMI_COME = {
    "#SBATCH --account=project_462000123": FILLED,
    "srun singularity run $SIF python3 myprog.py --epochs 3": CONTAINER,
}
ALLIANCE_COME = {
    "#SBATCH --nodes=1": ONE_NODE,
    "#SBATCH --time=1:00:00": NO_TIME,
    "srun python train.py": COMMAND,
    **ALLIANCE_PYTORCH,
    **OMP,
    **SRUN,
}
HOROVOD_GONE = {**FILLED_GONE, "#SBATCH --ntasks=8": TASKS_A_NODE}
HOROVOD_COME = {**FILLED_COME, "#SBATCH --ntasks-per-node=4": TASKS_A_NODE}


def undashed(*options: str) -> dict[str, str]:
    return {f"#SBATCH {option}": DASHES for option in options}


def dashed(*options: str) -> dict[str, str]:
    return {f"#SBATCH --{option}": DASHES for option in options}


class Case(NamedTuple):
    """One script of a document."""

    document: str
    arguments: str
    """Of `teho plan`, as typed."""
    gone: dict[str, str]
    """Lines of the document that the script does not have -> why."""
    come: dict[str, str] | None
    """Lines of the script that the document does not have -> why. None: the document shows
    some lines of a script alone."""


CSC_ML, CSC_MULTI = "csc-gpu-ml.md", "csc-multi-gpu.md"
LUMI_AI, ARC4 = "lumi-multiple-gpus.md", "arc4-gpu-deep-learning.md"
ALLIANCE = "alliance-gpu-best-practices.md"
PUHTI = "--cluster puhti --even-if-retired --account project_2001234"
MAHTI = "--cluster mahti --even-if-retired --account project_2001234"
PROGRAM = "--script -- python3 myprog.py --epochs 3"

CASES = {
    "csc-puhti-1-gpu": Case(
        CSC_ML,
        f"{PUHTI} --mem 64GiB --time 1h {PROGRAM}",
        FILLED_GONE,
        {**FILLED_COME, **PYTORCH, **OMP, **SRUN},
    ),
    "csc-mahti-1-gpu": Case(
        CSC_ML,
        f"{MAHTI} --partition gpusmall --time 1h {PROGRAM}",
        FILLED_GONE,
        {**FILLED_COME, **PYTORCH, **OMP, **SRUN},
    ),
    "csc-lumi-1-gpu": Case(
        CSC_ML,
        f"--cluster lumi --account project_462000123 --time 1h {PROGRAM}",
        FILLED_GONE,
        {**LUMI_COME, "#SBATCH --nodes=1": ONE_NODE, **LUMI_PYTORCH, **OMP, **SRUN},
    ),
    "csc-lumi-energy": Case(
        CSC_ML,
        "--cluster lumi --account project_462000123 --gpus 8 --partition standard-g --time 1h"
        " --record --script -- python3 myprog.py --epochs 3",
        {"gpu-energy --save": RECORDED, "gpu-energy --diff": RECORDED},
        None,
    ),
    "csc-module": Case(
        CSC_ML,
        f"{PUHTI} --mem 64GiB --time 1h --framework tensorflow==2.12 {PROGRAM}",
        {},
        None,
    ),
    "csc-puhti-2-gpus": Case(
        CSC_MULTI,
        f"{PUHTI} --gpus 2 --mem 64GiB --time 1h {PROGRAM}",
        FILLED_GONE,
        {**FILLED_COME, **PYTORCH, **OMP, **SRUN},
    ),
    "csc-mahti-2-gpus": Case(
        CSC_MULTI,
        f"{MAHTI} --partition gpusmall --gpus 2 --cpus 32 --time 1h {PROGRAM}",
        FILLED_GONE,
        {**FILLED_COME, **PYTORCH, **OMP, **SRUN},
    ),
    "csc-puhti-horovod": Case(
        CSC_MULTI,
        f"{PUHTI} --gpus 8 --launcher horovod --mem 64GiB --time 1h --framework tensorflow"
        f" {PROGRAM}",
        HOROVOD_GONE,
        {**HOROVOD_COME, **WITH_HOROVOD, **OMP, **SRUN},
    ),
    "csc-mahti-horovod": Case(
        CSC_MULTI,
        f"{MAHTI} --gpus 8 --launcher horovod --time 1h --framework tensorflow {PROGRAM}",
        HOROVOD_GONE,
        {**HOROVOD_COME, **WITH_HOROVOD, **OMP, **SRUN},
    ),
    "lumi-16-gpus": Case(
        LUMI_AI,
        "--cluster lumi --account project_462000123 --gpus 16 --partition standard-g"
        " --launcher torchrun --time 1h --script -- train.py",
        {},
        None,
    ),
    "lumi-gpu-per-rank": Case(
        LUMI_AI,
        "--cluster lumi --account project_462000123 --gpus 8 --partition standard-g"
        " --launcher srun --gpus-per-task 1 --time 1h --script -- python train.py",
        {},
        None,
    ),
    "arc4-test": Case(
        ARC4,
        "--cluster arc4 --even-if-retired --time 15min --name test_GPU --log output.log"
        " --error-log error.log --mail begin,end --framework none --line nvidia-smi"
        " --line 'conda activate pytorch-gpu'"
        " --script -- python test_GPU.py",
        {},
        {"export OMP_NUM_THREADS=10": THREADS},
    ),
    "arc4-anaconda": Case(
        ARC4,
        "--cluster arc4 --even-if-retired --time 15min --name test_GPU"
        " --script -- python test_GPU.py",
        {},
        None,
    ),
    "alliance-gpu": Case(
        ALLIANCE,
        "--cluster narval --account def-myself_gpu --cpus 4 --mem 8000MiB"
        " --script -- python train.py",
        {
            **undashed("ntasks=1", "cpus-per-task=4", "mem=8000M", "account=def-myself_gpu"),
            "#SBATCH gres=gpu:1": TYPE,
        },
        {
            **dashed("ntasks=1", "cpus-per-task=4", "mem=8000M", "account=def-myself_gpu"),
            "#SBATCH --gpus-per-node=a100:1": TYPE,
            **ALLIANCE_COME,
        },
    ),
    "alliance-cpu": Case(
        ALLIANCE,
        "--cluster narval --account def-myself_cpu --gpus 0 --cpus 16 --mem 32000MiB"
        " --script -- python train.py",
        undashed("ntasks=1", "cpus-per-task=16", "mem=32000M", "account=def-myself_cpu"),
        {
            **dashed("ntasks=1", "cpus-per-task=16", "mem=32000M", "account=def-myself_cpu"),
            **ALLIANCE_COME,
        },
    ),
    "alliance-cedar-v100l": Case(
        ALLIANCE,
        "--cluster cedar --even-if-retired --gpu-type v100l --time 1h --script -- python train.py",
        {},
        None,
    ),
}


def lines_of(text: str) -> set[str]:
    """Return what a script says: its lines without indentation, comments left out."""
    stripped = (line.strip().replace("#! ", "#!") for line in text.splitlines())
    return {
        line for line in stripped
        if line and (line[0] != "#" or line.startswith(("#!", "#SBATCH ", "#$ ")))
    }  # fmt: skip


def written(arguments: str, capsysbinary: pytest.CaptureFixture[bytes]) -> str:
    """Return what the command writes to standard output."""
    command_line.main(["plan", *shlex.split(arguments)], standalone_mode=False)
    return capsysbinary.readouterr().out.decode()


@pytest.mark.parametrize("name", CASES)
def test_a_documents_script_by_one_command(
    name: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    case = CASES[name]
    text = written(case.arguments, capsysbinary)
    check_golden(DATA / f"{name}.sh", text)
    theirs, ours = lines_of((DATA / f"{name}.source").read_text()), lines_of(text)
    assert theirs - ours == set(case.gone)
    if case.come is not None:
        in_each = set(NO_REQUEUE) & ours
        assert ours - theirs == set(case.come) | in_each


def test_every_line_of_a_document_is_accounted_for() -> None:
    names = {path.stem for path in DATA.glob("*.source")}
    assert names == set(CASES) == {path.stem for path in DATA.glob("*.sh")}
    assert {case.document for case in CASES.values()} == {
        CSC_ML, CSC_MULTI, LUMI_AI, ARC4, ALLIANCE,
    }  # fmt: skip


def test_every_command_is_documented() -> None:
    page = " ".join((ROOT / "docs" / "scripts.md").read_text().split())
    for case in CASES.values():
        assert f"`{case.document}`" in page
        assert f"`teho plan {case.arguments}`" in page
