"""Shared copies: readable for one group, and for nobody else. Some tests are other real users."""

from __future__ import annotations

import grp
import os
import shutil
import stat
import struct
import sys
import time
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet
import pytest

from made_runs import make_run
from other_users import ALICE, BOB, EVE, as_user, root
from teho.errors import InputError, RecordingError
from teho.store.index_file import IndexFile
from teho.store.read import read_run, rows_of_node
from teho.store.search import Search
from teho.store.share import copies, is_sound, share, shared_homes, unshare

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
GROUP, GROUP_NAME = 100, "users"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make a folder of a project that the group can write, below folders that all can enter."""
    if os.geteuid() == 0:
        for above in (tmp_path, *tmp_path.parents):
            if "pytest" in str(above):
                above.chmod(0o711)
    shared = tmp_path / "project"
    shared.mkdir()
    if os.geteuid() == 0:
        os.chown(shared, 0, GROUP)
    shared.chmod(0o1770)
    return shared


def recording(folder: Path, owner: int = -1) -> Path:
    """Make a private recording of a user, with an output and a lease."""
    home = folder / f"home{owner}"
    run = home / "runs" / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, run)
    (run / "stdout").write_text("password: hunter2")
    (run / "leases").mkdir()
    (run / "leases" / "viewer.json").write_text('{"token": "secret"}')
    (run / "strange.txt").write_text("not of Teho")
    (run / "samples" / "linked.parquet").symlink_to("/etc/passwd")
    for path in (home, *home.rglob("*")):
        if owner >= 0:
            os.chown(path, owner, owner, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    return run


@root
def test_only_the_group_reads_a_shared_run(tmp_path: Path, place: Path) -> None:
    run = recording(tmp_path, ALICE)
    copy = as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    assert copy == place / "games" / GROUP_NAME / "runs" / run.name

    def read() -> tuple[str, int]:
        found = read_run(copy)
        rows = rows_of_node(copy, found.nodes[0].name, "gpu", ["gpu_busy_percent"], [])
        assert rows is not None
        return found.id, rows.table.num_rows

    assert as_user(BOB, [GROUP], read)[1] > 100
    for user, groups in ((EVE, []), (BOB, [1])):
        with pytest.raises(RecordingError):
            as_user(user, groups, read)
        with pytest.raises(PermissionError):
            as_user(user, groups, lambda: list(place.iterdir()))
    # The recording itself is as private as before.
    with pytest.raises(PermissionError):
        as_user(BOB, [GROUP], lambda: list(run.iterdir()))
    for path in copy.rglob("*"):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (ALICE, GROUP)
        assert stat.S_IMODE(status.st_mode) == (0o750 if path.is_dir() else 0o640)


@root
def test_each_group_has_a_copy_of_its_own(tmp_path: Path, place: Path) -> None:
    other = grp.getgrnam("staff")
    place.chmod(0o1777)
    run = recording(tmp_path, ALICE)
    for name in (GROUP_NAME, other.gr_name):
        as_user(ALICE, [GROUP, other.gr_gid], lambda name=name: share(run, place, name))
    for group, name in ((GROUP, GROUP_NAME), (other.gr_gid, other.gr_name)):
        seen = as_user(BOB, [group], lambda: shared_homes(place))
        assert seen == [place / "games" / name]
    assert as_user(EVE, [], lambda: shared_homes(place)) == []
    as_user(ALICE, [GROUP], lambda: unshare(run.name, place, GROUP_NAME))
    assert [copy.group for copy in as_user(ALICE, [], lambda: copies(place))] == [other.gr_name]


@root
def test_what_can_have_secrets_is_not_copied(tmp_path: Path, place: Path) -> None:
    run = recording(tmp_path, ALICE)
    copy = as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    assert sorted(path.name for path in copy.iterdir()) == ["nodes", "run.json", "samples"]
    assert not list(copy.rglob("linked*"))
    everything = b"".join(path.read_bytes() for path in copy.rglob("*") if path.is_file())
    assert b"hunter2" not in everything
    assert b"secret" not in everything


@root
def test_an_access_list_of_the_folder_does_not_widen_a_copy(tmp_path: Path, place: Path) -> None:
    named_user = 0x02
    entries = [(0x01, 7, -1), (named_user, 7, EVE), (0x04, 7, -1), (0x10, 7, -1), (0x20, 7, -1)]
    acl = struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, bits, number & 0xFFFFFFFF) for tag, bits, number in entries
    )
    try:
        os.setxattr(place, "system.posix_acl_default", acl)
    except OSError:
        pytest.skip("this file system has no access lists")
    place.chmod(0o1777)
    run = recording(tmp_path, ALICE)
    (place / "probe").mkdir()
    assert os.listxattr(place / "probe"), "the list is inherited here"
    copy = as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    for path in (copy.parent.parent.parent, copy.parent.parent, copy.parent, copy,
                 *copy.rglob("*")):  # fmt: skip
        assert os.listxattr(path) == []
        assert not path.stat().st_mode & 0o006
    with pytest.raises(PermissionError):
        as_user(EVE, [], (copy / "run.json").read_bytes)
    assert as_user(BOB, [GROUP], (copy / "run.json").read_bytes)


@root
def test_only_own_groups_can_be_given(tmp_path: Path, place: Path) -> None:
    run = recording(tmp_path, ALICE)
    for group in ("root", "shadow", "no such group"):
        with pytest.raises(InputError, match="not a member of a group"):
            as_user(ALICE, [GROUP], lambda group=group: share(run, place, group))
    assert list(place.iterdir()) == []


@root
def test_a_folder_that_somebody_else_made_is_not_used(tmp_path: Path, place: Path) -> None:
    run = recording(tmp_path, ALICE)
    as_user(EVE, [GROUP], lambda: (place / "games").mkdir(mode=0o777))
    with pytest.raises(RecordingError, match="not a folder of yours"):
        as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    (place / "games").rmdir()
    trap = tmp_path / "trap"
    trap.mkdir(mode=0o777)
    as_user(EVE, [GROUP], lambda: (place / "games").symlink_to(trap))
    with pytest.raises(RecordingError, match="not a folder of yours"):
        as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    assert list(trap.iterdir()) == []


@root
def test_a_home_under_another_name_is_not_believed(tmp_path: Path, place: Path) -> None:
    run = recording(tmp_path, ALICE)
    as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    assert as_user(BOB, [GROUP], lambda: shared_homes(place)) == [place / "games" / GROUP_NAME]
    as_user(EVE, [GROUP], lambda: (place / "news" / GROUP_NAME / "runs").mkdir(parents=True))
    (place / "mail").mkdir()
    os.chown(place / "mail", EVE, EVE)
    (place / "mail" / GROUP_NAME).symlink_to(place / "games" / GROUP_NAME)
    assert as_user(BOB, [GROUP], lambda: shared_homes(place)) == [place / "games" / GROUP_NAME]
    assert as_user(BOB, [1], lambda: shared_homes(place)) == []


@root
@pytest.mark.parametrize("kind", ["link", "pipe", "other owner", "huge"])
def test_a_copy_that_could_harm_a_reader_is_not_read(
    tmp_path: Path, place: Path, kind: str
) -> None:
    run = recording(tmp_path, ALICE)
    copy = as_user(ALICE, [GROUP], lambda: share(run, place, GROUP_NAME))
    assert is_sound(copy)
    (samples,) = (copy / "samples").iterdir()
    if kind == "link":
        samples.unlink()
        samples.symlink_to("/etc/passwd")
    elif kind == "pipe":
        (copy / "run.json").unlink()
        os.mkfifo(copy / "run.json")
        os.chown(copy / "run.json", ALICE, GROUP)
    elif kind == "other owner":
        os.chown(samples, EVE, GROUP)
    else:
        os.truncate(copy / "run.json", 1 << 40)
    assert not is_sound(copy)
    file = IndexFile.open()
    index = file.home(copy.parent, check=is_sound)
    index.refresh()
    (listed,) = Search(file, [index], "judge").find()
    assert (listed.outcome, listed.command) == ("damaged", "")
    file.close()


def own_group() -> str:
    return grp.getgrgid(os.getegid()).gr_name


def test_sharing_again_replaces_the_copy_and_unsharing_deletes_it(
    tmp_path: Path, place: Path
) -> None:
    run = recording(tmp_path)
    first = share(run, place, own_group())
    (run / "nodes" / "more.overview.arrow").write_bytes(b"x")
    assert share(run, place, own_group()) == first
    assert (first / "nodes" / "more.overview.arrow").exists()
    assert [copy.group for copy in copies(place)] == [own_group()]
    assert unshare(run.name, place, "another") == []
    assert unshare(run.name, place) == [first]
    assert copies(place) == []
    assert list(first.parent.iterdir()) == [], "no remains under a hidden name"
    assert run.exists()


def test_a_run_that_continues_is_not_shared(tmp_path: Path, place: Path) -> None:
    run = make_run(tmp_path, 1, elapsed_s=None)
    os.utime(run / "nodes" / "g1.json", (time.time(), time.time()))
    with pytest.raises(RecordingError, match="still runs"):
        share(run, place, own_group())


def test_a_failed_copy_leaves_nothing(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recording(tmp_path)
    monkeypatch.setattr(
        shutil, "copyfileobj", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(RecordingError, match="full"):
        share(run, place, own_group())
    assert [path for path in place.rglob("*") if path.is_file()] == []
    assert copies(place) == []


def test_the_commands_share_list_and_unshare(
    teho, tmp_path: Path, home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(home, 1)
    make_run(home, 2)
    assert "TEHO_SHARED is not set" in teho("share", "last", "--with", own_group()).stderr
    monkeypatch.setenv("TEHO_SHARED", str(place))
    assert "--with is missing" in teho("share", "last").stderr
    done = teho("share", "--all", "--with", own_group())
    assert done.returncode == 0, done.stderr
    assert f"the members of {own_group()} can read 2 runs" in done.stderr
    assert teho("share").stdout.count(f"shared with {own_group()}") == 2
    assert "deleted 1 shared run" in teho("unshare", "20261101-09").stderr
    assert teho("share").stdout.count("shared with") == 1
    assert "deleted 1 shared run" in teho("unshare", "last").stderr
    assert "you share no runs" in teho("share").stderr


def test_what_is_masked_stays_masked_in_the_copy(
    teho, tmp_path: Path, home: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEHO_SHARED", str(place))
    program = [sys.executable, "-c", "import time; time.sleep(1)", "--password", "hunter2"]
    done = teho(
        "run", "-q", "--every", "100ms", "--keep-output", "--tag", "token=hunter2", "--",
        *program, "https://maija:hunter2@example.org/data",
        env={"API_TOKEN": "hunter2", "OMP_NUM_THREADS": "2"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert teho("share", "last", "--with", own_group()).returncode == 0
    (copy,) = place.glob("*/*/runs/*")
    found = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert [path.name for path, content in found.items() if b"hunter2" in content] == []
    shared = read_run(copy)
    assert shared.tags == {"token": "•••"}
    assert shared.command[-2:] == ("•••", "https://maija:•••@example.org/data")
    # Also a column that is compressed has no secret.
    for path in copy.glob("samples/*.parquet"):
        table = pyarrow.parquet.read_table(path)
        assert table.num_rows > 0
        assert "hunter2" not in str(table.to_pydict())
