"""What tests of scripts with `module load` share."""

from __future__ import annotations

from pathlib import Path

import pytest
from module_site import MODULE_SYSTEMS


@pytest.fixture(params=MODULE_SYSTEMS)
def module_system(request: pytest.FixtureRequest) -> Path:
    """Return what defines `module`, of Environment Modules and of Lmod; skip where it is not."""
    init = MODULE_SYSTEMS[request.param]
    if not init.exists():
        pytest.skip(f"{request.param} is not installed; tests/debian-packages.sh does, as root")
    return init
