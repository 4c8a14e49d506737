"""The space of the temporary folder: only the node's own file systems are asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from teho.devices.host.space import TemporarySpace
from teho.model.missing import Missing, Reason

OTHERS_BYTES = 1 << 30
"""Other programs write to the same file system between two readings."""
MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:5 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
24 23 8:2 / /scratch/local rw - xfs /dev/nvme0n1 rw
25 22 0:6 / /tmp rw - tmpfs tmpfs rw
26 25 0:7 / /tmp rw - nfs4 server:/tmp rw
27 22 0:8 / /job\\040folder rw - tmpfs tmpfs rw
"""


def reading(root: Path, folder: str, mounts: str = MOUNTS) -> tuple[object, object]:
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    read = TemporarySpace(root, {"TMPDIR": folder} if folder else {}).read()
    return read["tmp_used_bytes"], read["tmp_free_bytes"]


@pytest.mark.parametrize("folder", ["/var/tmp", "/scratch/local/4711", "/job folder", "/tmpfiles"])
def test_the_figures_are_those_of_df(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder.lstrip("/")).mkdir(parents=True)
    used, free = reading(tmp_path, folder)
    command = ["df", "-B1", "--output=used,avail", str(tmp_path)]
    shown = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    known = [int(word) for word in shown.splitlines()[1].split()]
    assert used == pytest.approx(known[0], abs=OTHERS_BYTES)
    assert free == pytest.approx(known[1], abs=OTHERS_BYTES)


@pytest.mark.parametrize(
    ("folder", "kind"), [("/scratch/me", "lustre"), ("/tmp/job", "nfs4"), ("", "nfs4")]
)
def test_a_server_that_may_hang_is_not_asked(tmp_path: Path, folder: str, kind: str) -> None:
    # The folder is not there: a call would fail with another reason.
    for missing in reading(tmp_path, folder):
        assert isinstance(missing, Missing)
        assert missing.reason is Reason.UNSUPPORTED
        assert f"of the type {kind}" in missing.detail


def test_a_folder_that_is_gone_is_missing(tmp_path: Path) -> None:
    used, free = reading(tmp_path, "/gone")
    assert isinstance(used, Missing)
    assert used.reason is Reason.ABSENT
    assert free == used


def test_without_the_table_of_mounts_the_space_is_not_known(tmp_path: Path) -> None:
    assert all(isinstance(one, Missing) for one in reading(tmp_path, "/tmp", ""))
