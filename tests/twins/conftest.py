"""What the tests on twins share."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import grid_engine_twin
import numpy as np
import pytest
import slurm_daemons
from grid_engine_twin import GridEngineTwin
from launched import Stage, train_alone

from teho.clusters.catalogue import load_cluster


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip, and say why, where no Slurm twin can start."""
    reason = slurm_daemons.why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def arc4() -> Iterator[GridEngineTwin]:
    """A twin of ARC4, one for each file; skip, and say why, where none can start."""
    reason = grid_engine_twin.why_not()
    if reason:
        pytest.skip(reason)
    with grid_engine_twin.started(load_cluster("arc4", {})) as twin:
        yield twin


@pytest.fixture(scope="module")
def stage(torch_python: Path) -> Iterator[Stage]:
    """Where the launchers' programs run. A short path, for Open MPI's sockets."""
    with tempfile.TemporaryDirectory(prefix="launch-") as folder:
        yield Stage(Path(folder), torch_python)


@pytest.fixture(scope="module")
def expected(stage: Stage) -> np.ndarray:
    """The gradient of a single process."""
    return train_alone(stage).gradients[0]
