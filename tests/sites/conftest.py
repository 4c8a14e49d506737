"""What the tests on random sites share with those on twins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "twins"))

from slurm_daemons import why_not


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip, and say why, where no Slurm can start."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
