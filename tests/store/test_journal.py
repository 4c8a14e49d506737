"""Rows on disk: nothing torn is read, nothing whole is lost, full disks are waited out."""

from __future__ import annotations

import errno
import os
import stat
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.errors import DamagedError
from teho.store import journal as journal_module
from teho.store import pack as pack_module
from teho.store.journal import Journal
from teho.store.layout import create_run_directory, live_parts, new_run_id, sealed_file
from teho.store.pack import seal
from teho.store.read import read_part, rows_of_node

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)


def row(second: int, device: str = "node", **values: object) -> dict[str, object]:
    return {
        "elapsed_s": float(second),
        "span_s": 1.0,
        "time": START + timedelta(seconds=second),
        "node": "n1",
        "kind": "node" if device == "node" else "gpu",
        "device": device,
        **values,
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return create_run_directory(tmp_path / "h", new_run_id(START, "a/b c"), b"{}")


def seconds(run: Path, device: str = "node") -> list[float]:
    problems: list[str] = []
    kind = "node" if device == "node" else "gpu"
    rows = rows_of_node(run, "n1", kind, ["elapsed_s"], problems)
    if rows is None or device not in rows.places:
        return []
    return rows.of(device)["elapsed_s"].to_pylist()


def test_what_is_written_is_read_before_and_after_sealing(run: Path) -> None:
    journal = Journal(run, "n1")
    values = {"job_cpu_s": 1.25, "core_busy_percent": [0, 100], "context_switches": 2**60}
    journal.append([row(1, **values), row(1, "GPU-a", gpu_busy_percent=99.5)])
    journal.flush()
    journal.append([row(2)])
    journal.close()
    assert seconds(run) == [1, 2]
    assert seal(run, "n1")
    assert seconds(run) == [1, 2]
    assert seconds(run, "GPU-a") == [1]
    assert list((run / "live").iterdir()) == []
    table = pq.ParquetFile(sealed_file(run, "n1")).read()
    first = next(one for one in table.to_pylist() if one["device"] == "node")
    assert {key: first[key] for key in values} == values
    assert first["gpu_busy_percent"] is None


def test_only_the_owner_can_read(run: Path) -> None:
    journal = Journal(run, "n1")
    journal.append([row(1)])
    journal.close()
    seal(run, "n1")
    for path in [run.parent.parent, *run.parent.parent.rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_stream_cut_anywhere_gives_its_whole_batches(run: Path) -> None:
    journal = Journal(run, "n1")
    ends = [0]
    for second in range(1, 6):
        journal.append([row(second, job_cpu_s=float(second))])
        journal.flush()
        ends.append(live_parts(run, "n1")[0].stat().st_size)
    (path,) = live_parts(run, "n1")
    content = path.read_bytes()
    for cut in range(0, len(content), 97):
        path.write_bytes(content[:cut])
        table, problem = read_part(path)
        whole = sum(cut >= end for end in ends[1:])
        assert table.num_rows == whole
        assert bool(problem) == (cut not in ends or cut == 0)


@given(st.binary(max_size=300), st.integers(0, 4000))
def test_a_stream_of_rubbish_never_raises_anything_else(rubbish: bytes, keep: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        run = create_run_directory(Path(name), "r", b"{}")
        journal = Journal(run, "n1")
        journal.append([row(1)])
        journal.close()
        (path,) = live_parts(run, "n1")
        path.write_bytes(path.read_bytes()[:keep] + rubbish)
        try:
            table, _ = read_part(path)
        except DamagedError:
            return
        assert table.num_rows in {0, 1}


def test_a_damaged_parquet_file_is_named(run: Path) -> None:
    path = run / "samples" / "n1.parquet"
    path.write_bytes(b"PAR1 no, not really")
    with pytest.raises(DamagedError, match=r"n1\.parquet"):
        read_part(path)
    problems: list[str] = []
    assert rows_of_node(run, "n1", "node", ["elapsed_s"], problems) is None
    assert "n1.parquet" in problems[0]


def test_a_full_disk_is_waited_out(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(run, "n1")
    journal.append([row(1)])
    journal.flush()
    real, room = os.write, 100

    def write(descriptor: int, data: bytes) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(descriptor, data[:room])
        room -= written
        return written

    monkeypatch.setattr(journal_module.os, "write", write)
    journal.append([row(2)])
    journal.flush()
    assert "No space left" in str(journal.problem)
    assert seconds(run) == [1]  # the torn end was taken back
    journal.append([row(3)])
    journal.flush()
    monkeypatch.setattr(journal_module.os, "write", real)
    journal.append([row(4)])
    journal.close()
    assert journal.problem is None
    assert seconds(run) == [1, 2, 3, 4]


def test_rows_are_given_up_rather_than_memory(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_PENDING_ROWS", 3)
    journal = Journal(run, "n1")
    journal.append([row(second) for second in range(5)])
    journal.close()
    assert journal.lost_rows == 2
    assert seconds(run) == [2, 3, 4]


def test_a_vanished_directory_is_a_problem_not_an_exception(run: Path) -> None:
    import shutil

    journal = Journal(run, "n1")
    journal.append([row(1)])
    journal.flush()
    shutil.rmtree(run)
    journal.append([row(2)])
    journal.flush()
    assert "No such file" in str(journal.problem)
    journal.close()


def test_a_long_run_is_rotated_and_nothing_is_lost_between(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_ROTATE_BYTES", 30_000)
    journal = Journal(run, "n1")
    for second in range(40):
        journal.append([row(second), row(second, "GPU-a", gpu_power_w=100.0)])
        journal.flush()
    assert seconds(run) == list(range(40))
    while any(not child.ended() for child in journal._packing):
        time.sleep(0.01)
    parts = live_parts(run, "n1")
    assert [path.suffix for path in parts[:2]] == [".parquet", ".parquet"]
    assert not parts[0].with_suffix(".arrows").exists()
    assert seconds(run) == list(range(40))
    # A kill between writing a rotated part and removing its stream leaves both.
    parts[0].with_suffix(".arrows").write_bytes(b"left over")
    assert seconds(run, "GPU-a") == list(range(40))
    journal.close()
    seal(run, "n1")
    assert seconds(run) == list(range(40))
    assert list((run / "live").iterdir()) == []


def test_sealing_that_fails_keeps_the_live_rows(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(run, "n1")
    journal.append([row(1)])
    journal.close()

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pack_module, "open_private", refuse)
    with pytest.raises(OSError, match="No space"):
        seal(run, "n1")
    assert seconds(run) == [1]


def flushed_each_second(run: Path, seconds: int) -> Journal:
    journal = Journal(run, "n1")
    for second in range(seconds):
        journal.append([row(second)])
        journal.flush()
    journal.close()
    return journal


def test_packing_that_fails_costs_room_and_no_rows(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal_module, "_ROTATE_BYTES", 30_000)
    monkeypatch.setattr(journal_module, "pack_part", refuse)
    journal = flushed_each_second(run, 40)
    assert journal.problem is None
    assert {path.suffix for path in live_parts(run, "n1")} == {".arrows"}
    assert seal(run, "n1")
    assert seconds(run) == list(range(40))


def test_no_process_for_packing_costs_room_and_no_rows(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(journal_module, "_ROTATE_BYTES", 30_000)
    monkeypatch.setattr(os, "fork", refuse)
    flushed_each_second(run, 40)
    assert seconds(run) == list(range(40))


def test_nothing_to_seal(run: Path) -> None:
    assert seal(run, "n1") is False
    assert not sealed_file(run, "n1").exists()


def test_node_names_that_begin_alike_stay_separate(run: Path) -> None:
    for node in ("n1", "n1.cluster"):
        journal = Journal(run, node)
        journal.append([row(1 if node == "n1" else 2)])
        journal.close()
    assert seconds(run) == [1]
