"""Only old recordings of `teho always` are removed."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_runs import BEGAN, make_run
from teho.store.automatic import automatic_runs, is_due, tidy

FOREVER_S = 1e9


def fill(run: Path, size_bytes: int) -> None:
    (run / "samples").mkdir()
    (run / "samples" / "n1.parquet").write_bytes(bytes(size_bytes))


def left(home: Path) -> list[str]:
    return sorted(path.name[-4:] for path in (home / "runs").iterdir())


def test_only_recordings_that_the_user_did_not_start_are_removed(home: Path) -> None:
    make_run(home, 0)
    make_run(home, 1, is_automatic=True)
    make_run(home, 2, is_automatic=True, tags={"keep": "yes"})
    make_run(home, 3, is_automatic=True, name="good")
    make_run(home, 4, is_automatic=True)
    assert [one.directory.name[-4:] for one in automatic_runs(home)] == ["0001", "0004"]
    assert tidy(home, keep_s=0, keep_bytes=0) == 2
    assert left(home) == ["0000", "0002", "0003"]


@given(
    sizes=st.lists(st.integers(0, 5000), max_size=6),
    keep_bytes=st.integers(0, 20_000),
    keep_h=st.integers(0, 7),
)
def test_the_newest_that_fit_stay(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], keep_bytes: int, keep_h: int
) -> None:
    home = tmp_path_factory.mktemp("home")
    runs = [make_run(home, number, is_automatic=True) for number in range(len(sizes))]
    for run, size_bytes in zip(runs, sizes, strict=True):
        fill(run, size_bytes)
    # Half an hour more, because the test takes some time.
    since = BEGAN + timedelta(hours=keep_h, minutes=-30)
    keep_s = (datetime.now(timezone.utc) - since).total_seconds()
    used = {one.directory: one.used_bytes for one in automatic_runs(home)}
    removed = tidy(home, keep_s, keep_bytes)
    kept = [run for run in runs if run.exists()]
    assert kept == runs[removed:]
    assert sum(used[run] for run in kept) <= keep_bytes
    assert all(int(run.name[-4:]) >= keep_h for run in kept)
    if removed:
        last = runs[removed - 1]
        is_old = int(last.name[-4:]) < keep_h
        assert is_old or sum(used[run] for run in (last, *kept)) > keep_bytes


def test_running_jobs_and_strange_files_stay(home: Path) -> None:
    now = datetime.now(timezone.utc)
    running = make_run(home, 0, is_automatic=True, elapsed_s=None, started_at=now, node="other")
    strange = make_run(home, 1, is_automatic=True)
    (strange / "notes.txt").write_text("mine")
    tidy(home, keep_s=-1, keep_bytes=0)
    assert running.exists()
    assert (strange / "notes.txt").exists()


def test_it_is_due_once_a_day(home: Path) -> None:
    assert not is_due(home)  # without a directory there is nothing to remove
    home.mkdir()
    assert is_due(home)
    assert not is_due(home)
    yesterday = time.time() - 90_000
    os.utime(home / ".always", (yesterday, yesterday))
    assert is_due(home)


def test_no_recordings_are_no_error(home: Path) -> None:
    assert automatic_runs(home) == []
    assert tidy(home, FOREVER_S, 0) == 0
