from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from teho.observe import spool as spool_module
from teho.observe.spool import Spool, spool_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "above" / "spool"
    path.mkdir(parents=True)
    return path


def test_whole_lines_come_home_once(folder: Path, tmp_path: Path) -> None:
    spool = Spool(str(folder), tmp_path / "probe", "n1")
    (folder / "99999999-1.jsonl").write_text("one\ntwo\nhal")
    spool.collect()
    spool.collect()
    home = tmp_path / "probe" / "n1-99999999-1.jsonl"
    assert home.read_text() == "one\ntwo\n"
    with (folder / "99999999-1.jsonl").open("a") as file:
        file.write("f\n")
    spool.collect()
    assert home.read_text() == "one\ntwo\nhalf\n"
    assert home.stat().st_mode & 0o777 == 0o600
    spool.close()
    assert not folder.parent.exists()


def test_what_did_not_come_home_is_not_taken_away(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "probe").write_text("no directory")
    (folder / "99999999-1.jsonl").write_text("one\n")
    spool = Spool(str(folder), tmp_path / "probe", "n1")
    with pytest.raises(OSError, match="directory"):
        spool.collect()
    spool.close()
    assert (folder / "99999999-1.jsonl").read_text() == "one\n"


def test_what_a_full_disk_left_of_a_line_is_written_over(folder: Path, tmp_path: Path) -> None:
    (folder / "99999999-1.jsonl").write_text("one\ntwo\n")
    spool = Spool(str(folder), tmp_path / "probe", "n1")
    spool.collect()
    home = tmp_path / "probe" / "n1-99999999-1.jsonl"
    with (folder / "99999999-1.jsonl").open("a") as file:
        file.write("three\n")
    with home.open("a") as torn:
        torn.write("thr")
    spool.collect()
    assert home.read_text() == "one\ntwo\nthree\n"


def test_any_key_is_one_name_of_a_folder() -> None:
    above = Path(f"/tmp/teho-{os.getuid()}")
    for key in ("slurm-puhti-7.0", "../../etc", "a/b c", "x" * 500):
        path = Path(spool_of(key))
        assert path.parent == above
        assert len(path.name) < 255


def test_what_a_living_process_writes_is_not_taken_away(folder: Path, tmp_path: Path) -> None:
    file = folder / f"{os.getpid()}-1.jsonl"
    file.write_text("one\n")
    spool = Spool(str(folder), tmp_path / "probe", "n1")
    spool.collect()
    spool.close()
    assert file.exists()


def test_a_folder_is_full_if_probes_report_it_as_full(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = spool_module._INJECT / "_teho_probe" / "lines.py"
    (most,) = re.findall(r"^_MOST_NAMES_BYTES = (.+)$", lines.read_text(), re.MULTILINE)
    assert most == "1024**2"
    assert spool_module._FULL_BYTES == 1024**2
    spool = Spool(str(folder), tmp_path / "probe", "n1")
    assert not spool.is_full
    monkeypatch.setattr(spool_module, "_FULL_BYTES", 1)
    assert spool.is_full
    assert not Spool(str(folder / "gone"), tmp_path / "probe", "n1").is_full
