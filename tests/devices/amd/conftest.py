"""Trees of files as the amdgpu driver writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stubs.amd_tree import AmdTree, RefusingKernel, build_mi210


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> RefusingKernel:
    return RefusingKernel(monkeypatch)


@pytest.fixture
def mi210(tmp_path: Path) -> AmdTree:
    return build_mi210(tmp_path, count=1)
