from __future__ import annotations

from pathlib import Path

import pytest

from probe.probed import Probed


@pytest.fixture
def probed(tmp_path: Path) -> Probed:
    return Probed(tmp_path)
