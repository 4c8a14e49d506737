"""The verdicts of `teho list`: computed once for each run, and again if something has changed."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from teho.cli.list import command
from teho.show.loaded import LoadedRun

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


@pytest.fixture
def counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Make two runs; return the list of the runs whose reports were computed."""
    for name in ("20261123-094500-one-aaaa", "20261123-094600-two-bbbb"):
        shutil.copytree(EXAMPLE, home / "runs" / name)
    computed: list[Path] = []
    real = LoadedRun.short_view.fget

    def short_view(self: LoadedRun) -> object:
        computed.append(self.directory)
        return real(self)

    monkeypatch.setattr(LoadedRun, "short_view", property(short_view))
    return computed


def listed() -> list[str]:
    result = CliRunner().invoke(command, [], help_option_names=["-h", "--help"])
    assert result.exit_code == 0, result.output
    return [line for line in result.output.splitlines() if "gpu never used" in line]


def test_a_verdict_is_computed_once(counted: list[Path]) -> None:
    first = listed()
    assert len(first) == len(counted) == 2
    assert listed() == first
    assert len(counted) == 2


def test_a_run_that_has_changed_is_judged_again(counted: list[Path], home: Path) -> None:
    listed()
    changed = home / "runs" / "20261123-094500-one-aaaa"
    os.utime(changed / "run.json", (2e9, 2e9))
    listed()
    assert counted[2:] == [changed]


def test_the_verdict_of_a_deleted_run_is_forgotten(
    counted: list[Path], home: Path, tmp_path: Path
) -> None:
    listed()
    shutil.rmtree(home / "runs" / "20261123-094500-one-aaaa")
    listed()
    (file,) = (tmp_path / "cache").rglob("*.sqlite")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("select id from verdict").fetchall() == [
            ("20261123-094600-two-bbbb",)
        ]


def test_other_thresholds_judge_again(
    counted: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed()
    limits = tmp_path / "limits.toml"
    limits.write_text("[gpu_low_use]\nbusy_percent = 40.0\n")
    monkeypatch.setenv("TEHO_THRESHOLDS", str(limits))
    CliRunner().invoke(command, [], help_option_names=["-h", "--help"])
    assert len(counted) == 4


def test_a_cache_that_is_damaged_is_made_again(counted: list[Path], tmp_path: Path) -> None:
    listed()
    (file,) = (tmp_path / "cache").rglob("*.sqlite")
    file.write_bytes(b"not a database" * 100)
    assert len(listed()) == 2
    assert len(counted) == 4
