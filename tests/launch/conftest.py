"""What the tests of `teho launch` share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _of_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without what this machine may be told of threads, ranks and caches."""
    for name in list(os.environ):
        if name.endswith(("_NUM_THREADS", "_CACHE_HOME")) or name in {"RANK", "WORLD_SIZE"}:
            monkeypatch.delenv(name)
