"""A note before a trace is read that needs more memory than is free."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from teho.cli.traces import say_if_large
from teho.profile.needs import needed_bytes


def large(path: Path, size: int) -> Path:
    """Make a file without content that takes no space."""
    path.touch()
    os.truncate(path, size)
    return path


def test_the_memory_that_traces_need(tmp_path: Path) -> None:
    plain = large(tmp_path / "a.json", 1000)
    packed = tmp_path / "b.json.gz"
    packed.write_bytes(gzip.compress(b"x" * 1000))
    space = large(tmp_path / "c.xplane.pb", 1000)
    assert [needed_bytes([one]) for one in (plain, packed, space)] == [900, 900, 1900]
    assert needed_bytes([plain, space, packed]) == 1900  # one after the other
    assert needed_bytes([plain] * 8) == 4 * 900
    assert needed_bytes([tmp_path / "none.json"]) == 0


def test_a_size_of_more_than_4_gib_in_a_packed_file(tmp_path: Path) -> None:
    path = large(tmp_path / "a.json.gz", 5 << 30)
    with path.open("r+b") as file:
        file.write(b"\x1f\x8b")
    assert needed_bytes([path]) >= 0.9 * (5 << 30)


def test_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = large(tmp_path / "a.json", 4 << 30)
    monkeypatch.setattr("teho.feed.room.free_host_bytes", lambda: 4 << 30)
    say_if_large([path])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("teho.feed.room.free_host_bytes", lambda: 1 << 30)
    say_if_large([path])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("teho: reading the trace needs about 3.60 GiB of memory, but only 1.00")
    say_if_large([large(tmp_path / "b.json", 1000)])
    assert capsys.readouterr().err == ""
