"""What the tests on twins share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from grid_engine_twin import GridEngineTwin, started
from grid_engine_twin import why_not as why_no_grid_engine
from launched import Launched, Stage, train_alone
from slurm_daemons import why_not

from teho.clusters.catalogue import load_cluster


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip, and say why, where no Slurm twin can start."""
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def arc4() -> Iterator[GridEngineTwin]:
    """Run a Grid Engine of ARC4's shape; skip, and say why, if none can start."""
    reason = why_no_grid_engine()
    if reason:
        pytest.skip(reason)
    with started(load_cluster("arc4", {})) as twin:
        yield twin


@pytest.fixture(scope="module")
def stage(torch_python: Path) -> Iterator[Stage]:
    """Return where launchers are tried."""
    # A short path, for Open MPI's sockets.
    with tempfile.TemporaryDirectory(prefix="launch-") as folder:
        yield Stage(Path(folder), torch_python)


@pytest.fixture(scope="module")
def alone(stage: Stage) -> Launched:
    """Return what a single process left that trained on the same batches."""
    return train_alone(stage)
