"""A /proc in which the test is the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from stubs.proc_tree import REAPER, RECORDER, ROOT, FakeProc, FakeProcess


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    fake = FakeProc(tmp_path / "proc", REAPER, ROOT)
    fake.add(FakeProcess(RECORDER, REAPER, ticks=7000, io=7000))
    return fake
