"""The age of a sample, if clocks differ, a recorder was killed, or a file is old."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from teho.explain.now import NewestValues
from teho.model.live import LiveSample, NodeNow, ProcessNow
from teho.model.run import FORMAT_VERSION, Node, Run
from teho.observe import viewer as viewer_module
from teho.observe.file_ages import FileAges
from teho.observe.sampler import SignalSampler
from teho.observe.viewer import Viewer
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, lease_folder, live_parts, now_file, replace_file

NAME = "n1"
SKEWS_S = [-900.0, -15.0, 0.0, 15.0, 900.0]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(viewer_module, "_FILE_S", 0.0)
    monkeypatch.setattr(viewer_module, "_NODES_PER_S", 1e9)
    # The rows are read at each poll.
    monkeypatch.setattr(viewer_module, "_RENEW_S", 0.0)
    monkeypatch.setattr(viewer_module, "SILENT_S", 0.0)
    return create_run_directory(tmp_path, "20261127-080000-ages-aaaa", b"{}")


def node(skew_s: float = 0.0) -> Node:
    at = datetime.now(timezone.utc) + timedelta(seconds=skew_s)
    return Node(name=NAME, started_at=at, period_s=1.0)


def put(directory: Path, elapsed_s: float, skew_s: float = 0.0) -> None:
    """Replace the file of a node on a file system that takes the time of the node."""
    row = {"kind": "node", "device": "node", "cpu_busy_percent": 50.0}
    path = now_file(directory, NAME)
    path.parent.mkdir(exist_ok=True)
    sample = LiveSample(node=NAME, elapsed_s=elapsed_s, rows=[row])
    replace_file(path, msgspec.json.encode(sample))
    at_s = time.time() + skew_s
    os.utime(path, (at_s, at_s))


class Rows:
    """The rows of a node whose clock, which also sets the time of its files, is wrong."""

    def __init__(self, directory: Path, skew_s: float) -> None:
        self._directory, self._skew_s = directory, skew_s
        self._sampler = SignalSampler(NAME, node().started_at, 1.0)
        self._journal = Journal(directory, NAME)
        self._read_s = 0.0
        self._sampler.begin({"node": {"cpu_busy_percent": 50.0}}, 0.0)

    def grow(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self._read_s += 1.0
            self._journal.append(
                self._sampler.add({"node": {"cpu_busy_percent": 50.0}}, self._read_s)
            )
        self._journal.flush()
        at_s = time.time() + self._skew_s
        os.utime(live_parts(self._directory, NAME)[-1], (at_s, at_s))


def seen(viewer: Viewer, described: Node) -> NodeNow:
    viewer.poll(0.0)
    run = Run(format=FORMAT_VERSION, id="r", command=("x",), started_at=described.started_at,
              host=NAME, nodes=(described,))  # fmt: skip
    (now,) = NewestValues().nodes(run, viewer.newest, time.monotonic())
    return now


def test_a_stale_file_is_as_old_as_it_is(directory: Path) -> None:
    described = node()
    put(directory, 100.0, -600.0)
    viewer = Viewer(directory, [described])
    now = seen(viewer, described)
    assert now.age_s == pytest.approx(600.0, abs=2.0)
    assert now.is_silent
    # It does not become younger.
    assert seen(viewer, described).age_s == pytest.approx(600.0, abs=2.0)
    viewer.close()


def test_the_file_of_a_killed_recorder_grows_older(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = node()
    viewer = Viewer(directory, [described])
    for second in range(1, 4):
        put(directory, float(second))
        assert seen(viewer, described).way == "file"
    later_s = time.monotonic() + 30.0
    monkeypatch.setattr("teho.observe.viewer.time.monotonic", lambda: later_s)
    now = seen(viewer, described)
    assert now.age_s == pytest.approx(30.0, abs=2.0)
    assert now.is_silent
    viewer.close()


@pytest.mark.parametrize("skew_s", SKEWS_S)
def test_a_node_with_a_wrong_clock_is_not_silent_while_its_file_changes(
    directory: Path, skew_s: float
) -> None:
    described = node(skew_s)
    viewer = Viewer(directory, [described])
    for second in range(1, 4):
        put(directory, float(second), skew_s)
        now = seen(viewer, described)
    assert now.age_s == pytest.approx(0.0, abs=2.0)
    assert not now.is_silent
    viewer.close()


@pytest.mark.parametrize("skew_s", SKEWS_S)
def test_a_node_with_a_wrong_clock_is_not_silent_while_its_rows_grow(
    directory: Path, skew_s: float
) -> None:
    described = node(skew_s)
    rows = Rows(directory, skew_s)
    rows.grow(20)
    viewer = Viewer(directory, [described])
    seen(viewer, described)
    for _ in range(3):
        rows.grow()
        now = seen(viewer, described)
        assert now.way == "recording"
        assert now.age_s == pytest.approx(0.0, abs=2.0)
        assert not now.is_silent
    viewer.close()


@pytest.mark.parametrize("way", ["file", "recording"])
def test_the_first_sample_of_a_node_with_a_right_clock_has_its_age(
    directory: Path, way: str
) -> None:
    """Whatever the clock of this machine says: the clock of the file system counts."""
    described = node(-3600.0)
    if way == "file":
        put(directory, 5.0, -8.0)
    else:
        Rows(directory, -8.0).grow(5)
    viewer = Viewer(directory, [described])
    now = seen(viewer, described)
    assert now.way == way
    assert now.age_s == pytest.approx(8.0, abs=2.0)
    viewer.close()


def test_rows_that_were_read_late_are_not_younger_than_the_last_reading() -> None:
    ages = FileAges()
    ages.note_read("rows n1")
    assert ages.age_s("rows n1", 0.0) == pytest.approx(0.0, abs=1.0)
    assert ages.age_s("rows n2", 0.0) > 1e6


def test_the_clock_of_the_file_system_counts(tmp_path: Path) -> None:
    """Both files are an hour ahead of this machine, as on a server with another clock."""
    ages, own = FileAges(), tmp_path / "lease"
    own.write_text("")
    at_s = time.time() + 3600.0
    os.utime(own, (at_s, at_s))
    ages.compare(own)
    assert ages.age_s("x", at_s - 7.0) == pytest.approx(7.0, abs=1.0)
    ages.compare(tmp_path / "none")  # the disk is full: the last comparison stays
    assert ages.age_s("x", at_s - 7.0) == pytest.approx(7.0, abs=1.0)


def test_a_row_of_a_long_run_is_not_silent_before_the_next_one_can_come(directory: Path) -> None:
    described = node()
    sampler = SignalSampler(NAME, described.started_at, 1.0)
    sampler.begin({"node": {"cpu_busy_percent": 50.0}}, 0.0)
    journal = Journal(directory, NAME)
    last_s = 0.0
    for second in range(1, 16_000):
        rows = sampler.add({"node": {"cpu_busy_percent": 50.0}}, float(second))
        journal.append(rows)
        last_s = rows[-1]["elapsed_s"] if rows else last_s
    journal.flush()
    at_s = time.time() - 35.0
    os.utime(live_parts(directory, NAME)[-1], (at_s, at_s))
    viewer = Viewer(directory, [described])
    now = seen(viewer, described)
    assert last_s > 15_000
    assert now.age_s == pytest.approx(35.0, abs=3.0)
    assert not now.is_silent
    assert now.silent_after_s < 120
    viewer.close()


def test_only_its_owner_can_read_a_lease(directory: Path) -> None:
    before = os.umask(0)
    try:
        viewer = Viewer(directory, [node()])
    finally:
        os.umask(before)
    (lease,) = lease_folder(directory).iterdir()
    assert lease.stat().st_mode & 0o777 == 0o600
    assert lease_folder(directory).stat().st_mode & 0o777 == 0o700
    viewer.close()


def test_a_row_does_not_replace_the_sample_of_the_same_moment(directory: Path) -> None:
    """It has a rounded time, and no processes."""
    viewer = Viewer(directory, [node()])
    process = ProcessNow(pid=1, parent=0, command="x", resident_bytes=1, threads=1)
    viewer._keep(LiveSample(node=NAME, elapsed_s=9.996, rows=[], processes=[process]), "connection")
    viewer._keep(LiveSample(node=NAME, elapsed_s=10.0, rows=[]), "recording")
    assert viewer.newest[NAME].way == "connection"
    viewer._keep(LiveSample(node=NAME, elapsed_s=10.1, rows=[]), "recording")
    assert viewer.newest[NAME].way == "recording"
    assert viewer.newest[NAME].processes == [process]
    viewer.close()
