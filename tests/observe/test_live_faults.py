"""The files of the live path on a full disk, and a lease that another real user made."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from other_users import ALICE, BOB, as_user, root
from support import wait_for
from teho.model.live import Lease, LiveSample
from teho.model.run import Node
from teho.observe.publisher import Publisher
from teho.observe.viewer import Viewer
from teho.store.layout import lease_folder, now_file, replace_file

NAME = "localhost"
NODE = Node(name=NAME, started_at=datetime.now(timezone.utc), period_s=1.0)


def sample(elapsed_s: float) -> LiveSample:
    row = {"kind": "node", "device": "node", "cpu_busy_percent": 50.0}
    return LiveSample(node=NAME, elapsed_s=elapsed_s, rows=[row])


def write_lease(run: Path, number: int) -> None:
    # Nobody listens there, so the samples are files.
    lease = Lease(number=number, addresses=("127.0.0.1:9",))
    replace_file(lease_folder(run) / "v.json", msgspec.json.encode(lease))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A recording on a file system of 64 kB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True, check=False,
    )  # fmt: skip
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    run = folder / "run"
    lease_folder(run).mkdir(parents=True)
    yield run
    subprocess.run(["umount", str(folder)], check=True)


def fill(run: Path) -> Path:
    filler = run.parent / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    assert shutil.disk_usage(run).free == 0
    return filler


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_viewer_on_a_full_disk_says_so_and_is_seen_as_soon_as_there_is_room(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teho.observe.viewer._RENEW_S", 0.0)
    filler = fill(small)
    viewer = Viewer(small, [NODE])
    viewer.poll(0.0)
    assert viewer.problem == f"{lease_folder(small)}: No space left on device"
    assert names(lease_folder(small)) == []  # no half-written file is left
    publisher = Publisher(small, NAME, 1)
    publisher.read_leases(time.monotonic())
    assert not publisher.watching(time.monotonic())
    filler.unlink()
    viewer.poll(0.0)
    assert viewer.problem == ""
    publisher.read_leases(time.monotonic())
    assert publisher.watching(time.monotonic())
    filler = fill(small)
    viewer.poll(0.0)
    assert "No space left" in viewer.problem
    assert len(names(lease_folder(small))) == 1  # the older lease is complete, and expires
    viewer.close()
    assert names(lease_folder(small)) == []
    publisher.close()


def test_the_file_of_a_sample_on_a_full_disk_is_the_older_one(small: Path) -> None:
    write_lease(small, 1)
    publisher = Publisher(small, NAME, 1)

    second = 0

    def publish() -> None:
        nonlocal second
        second += 1
        now_s = 100.0 + 0.06 * second  # the lease, which cannot be renewed, is valid for 20 s
        publisher.read_leases(now_s)
        publisher.publish(sample(float(second)), now_s)

    def filed_s() -> float:
        return msgspec.json.decode(now_file(small, NAME).read_bytes(), type=LiveSample).elapsed_s

    # While it tries to connect, it writes no file.
    wait_for(lambda: (publish(), now_file(small, NAME).exists())[1])
    filler = fill(small)
    before = filed_s()
    for _ in range(20):
        publish()
        time.sleep(0.01)
    assert filed_s() == before
    assert names(now_file(small, NAME).parent) == [f"{NAME}.json"]
    filler.unlink()
    wait_for(lambda: (publish(), filed_s() > before)[1])
    assert filed_s() == second
    publisher.close()
    assert not now_file(small, NAME).exists()


@pytest.fixture
def shared() -> Iterator[Path]:
    """A recording into which all users may write, as by mistake of its owner."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = folder / "run"
        lease_folder(run).mkdir(parents=True)
        for path in (folder, run, lease_folder(run)):
            path.chmod(0o777)
        yield run


def is_watched(run: Path) -> bool:
    publisher = Publisher(run, NAME, 1)
    publisher.read_leases(0.0)
    return publisher.watching(0.0)


@root
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_only_the_lease_of_the_recorders_own_user_counts(shared: Path, mode: int) -> None:
    def lease() -> None:
        write_lease(shared, 1)
        (lease_folder(shared) / "v.json").chmod(mode)

    as_user(BOB, [], lease)
    assert (lease_folder(shared) / "v.json").stat().st_uid == BOB
    assert not as_user(ALICE, [], lambda: is_watched(shared))
    assert not is_watched(shared)  # root could read any file
    assert as_user(BOB, [], lambda: is_watched(shared))


@root
def test_only_its_user_can_read_the_lease_of_a_viewer(shared: Path) -> None:
    def modes() -> tuple[int, int]:
        viewer = Viewer(shared, [NODE])
        (path,) = lease_folder(shared).iterdir()
        found = path.stat()
        viewer.close()
        return found.st_uid, found.st_mode & 0o777

    assert as_user(ALICE, [], modes) == (ALICE, 0o600)
