"""What the tests on twins share."""

from __future__ import annotations

import pytest
from slurm_daemons import why_not


@pytest.fixture(scope="session")
def slurm() -> None:
    """Skip, and say why, where no Slurm twin can start."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
