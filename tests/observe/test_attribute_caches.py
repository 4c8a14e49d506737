"""Watching over a file system that caches attributes and names, as NFS does.

Two mounts of one folder are two machines: each has caches of its own, and does not see at once what
the other one changes. Lists of folders are not cached here, as they may be on NFS.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from support import wait_for
from teho.model.live import LiveSample
from teho.model.run import Node
from teho.observe.publisher import Publisher
from teho.observe.viewer import Viewer
from teho.store.layout import create_run_directory

CACHED_S = 6.0
SAMPLE_S = 1.0
LATE_S = 3.0
"""On a machine that has other work, a sample may be so much later than the period."""
RUN_ID = "20261127-080000-cached-aaaa"
HERE = "localhost"


@pytest.fixture
def mounts(tmp_path: Path) -> Iterator[list[Path]]:
    """Return the run's directory as the node of the recorder and as the viewer see it."""
    if not shutil.which("bindfs"):
        pytest.skip("bindfs is not installed: tests/debian-packages.sh installs it")
    real, places = tmp_path / "real", [tmp_path / "node", tmp_path / "login"]
    cached = ",".join(f"{what}_timeout={CACHED_S:g}" for what in ("attr", "entry", "negative"))
    mounted: list[subprocess.Popen[bytes]] = []
    for place in (real, *places):
        place.mkdir()
    run = create_run_directory(real, RUN_ID, b"{}").relative_to(real)
    try:
        for place in places:
            command = ["bindfs", "-f", "-o", cached, str(real), str(place)]
            mounted.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        end_s = time.monotonic() + 10
        while not all(map(os.path.ismount, places)):
            if time.monotonic() > end_s or any(one.poll() is not None for one in mounted):
                pytest.skip("this machine does not permit to mount a file system in user space")
            time.sleep(0.05)
        if not _has_caches(*places):
            pytest.skip("this version of bindfs has no caches")
        yield [place / run for place in places]
    finally:
        for one in mounted:
            one.terminate()  # bindfs unmounts its file system
            one.wait(20)


def _has_caches(node: Path, login: Path) -> bool:
    """Return whether one mount does not see at once what the other one changes."""
    (node / "file").touch()
    before_ns = (login / "file").stat().st_mtime_ns
    os.utime(node / "file", (0, 0))
    return (login / "file").stat().st_mtime_ns == before_ns


class Watched:
    """A node that is recorded, and the viewer that watches it from another machine."""

    def __init__(self, mounts: list[Path], node_count: int) -> None:
        self.began_s = time.monotonic()
        node, login = mounts
        self.publisher = Publisher(node, HERE, node_count)
        self._sampled_s = float("-inf")
        # The recorder has looked for viewers before, so the attributes are in its cache.
        end_s = time.monotonic() + 2 * SAMPLE_S
        while time.monotonic() < end_s:
            self._sample()
        described = Node(name=HERE, started_at=datetime.now(timezone.utc), period_s=SAMPLE_S)
        self.viewer = Viewer(login, [described])

    def _sample(self) -> None:
        now_s = time.monotonic()
        if now_s - self._sampled_s >= SAMPLE_S:
            self._sampled_s = now_s
            if self.publisher.watching(now_s):
                row = {"kind": "node", "device": "node", "cpu_busy_percent": 50.0}
                sample = LiveSample(node=HERE, elapsed_s=now_s - self.began_s, rows=[row])
                self.publisher.publish(sample, now_s)
        time.sleep(0.05)

    def ages(self) -> tuple[float, float] | None:
        """Sample and look; return the true age of the newest value, and the shown one."""
        self._sample()
        self.viewer.poll(0.0)
        newest = self.viewer.newest.get(HERE)
        if newest is None:
            return None
        now_s = time.monotonic()
        return now_s - self.began_s - newest.sample.elapsed_s, now_s - newest.at_s

    def has(self, way: str) -> bool:
        return self.ages() is not None and self.viewer.newest[HERE].way == way

    def close(self) -> None:
        self.viewer.close()
        self.publisher.close()


@pytest.fixture
def watch(mounts: list[Path]) -> Iterator[Callable[[int], Watched]]:
    found: list[Watched] = []
    yield lambda node_count: (found.append(Watched(mounts, node_count)), found[-1])[1]
    for one in found:
        one.close()


def test_the_lease_is_found_when_the_cache_has_ended(watch: Callable[[int], Watched]) -> None:
    watched = watch(6)  # the recorder asks every 10 s
    begin_s = time.monotonic()
    wait_for(lambda: watched.has("connection"), 60)
    assert time.monotonic() - begin_s < 10.0 + CACHED_S + LATE_S


def test_the_values_of_files_are_not_as_old_as_the_cache(
    watch: Callable[[int], Watched], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Viewer, "_own_addresses", lambda _: ["127.0.0.1:9"])  # nobody listens
    watched = watch(1)
    begin_s = time.monotonic()
    wait_for(lambda: watched.has("file"), 60)
    # The viewer had asked for the folder of the files before the recorder made it.
    assert time.monotonic() - begin_s < 2 * SAMPLE_S + CACHED_S + LATE_S
    end_s = time.monotonic() + 1.5 * CACHED_S
    while time.monotonic() < end_s:
        ages = watched.ages()
        assert ages is not None
        true_s, shown_s = ages
        assert true_s < SAMPLE_S + LATE_S
        assert abs(shown_s - true_s) < SAMPLE_S + 1.0
