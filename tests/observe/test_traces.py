"""The recorder passes plans to the probes, and packs their traces into the recording."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from support import wait_for
from teho.observe.traces import Traces
from teho.store.traces import newest_traces, plan_of_trace, traces_of_plan


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "plans").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "spool").mkdir()
    return tmp_path / "spool"


def test_a_plan_is_passed_on_once(run: Path, spool: Path) -> None:
    traces = Traces(str(spool), run, "g1", node_count=3)
    traces.look(0.0)
    assert not list(spool.iterdir())
    (run / "plans" / "a.json").write_text("{}")
    traces.look(2.0)  # three nodes look every 3 s
    assert not list(spool.iterdir())
    traces.look(3.0)
    assert (spool / "profile.json").read_text() == "{}"
    (spool / "profile.json").unlink()
    traces.look(6.0)
    assert not list(spool.iterdir())


def test_a_plan_waits_for_the_folder_of_the_probes(run: Path, tmp_path: Path) -> None:
    traces = Traces(str(tmp_path / "late"), run, "g1", node_count=1)
    (run / "plans" / "a.json").write_text("{}")
    traces.look(0.0)
    (tmp_path / "late").mkdir()
    traces.look(1.0)
    assert (tmp_path / "late" / "profile.json").exists()


def test_traces_are_packed(run: Path, spool: Path) -> None:
    traces = Traces(str(spool), run, "g1", node_count=1)
    assert traces.collect() == ""
    content = {name: f"trace of {name}".encode() for name in ("rank0-1-aa", "rank1-2-aa")}
    for name, data in content.items():
        (spool / f"trace-{name}.json").write_bytes(data)
    (spool / "trace-rank2-3-aa.part").write_bytes(b"not ready")
    (spool / "profile.json").write_text("{}")
    (spool / "profile-aa-0.claim").write_text("")
    assert traces.collect() == ""
    wait_for(lambda: len(traces_of_plan(run, "aa")) == 1)
    assert traces.close() == ""
    found = newest_traces(run)
    assert [path.name for path in found] == [f"g1-trace-{name}.json.gz" for name in content]
    assert [gzip.decompress(path.read_bytes()) for path in found] == list(content.values())
    assert {plan_of_trace(path) for path in found} == {"aa"}
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert not list(spool.iterdir())


def test_a_trace_that_cannot_be_stored_is_said_and_stays(run: Path, spool: Path) -> None:
    (run / "traces").write_text("not a folder")
    traces = Traces(str(spool), run, "g1", node_count=1)
    (spool / "trace-single-1-aa.json").write_bytes(b"x")
    problem = traces.close()
    assert "trace-single-1-aa.json could not be copied into the recording" in problem
    assert (spool / "trace-single-1-aa.json").exists()
    assert traces.collect() == ""  # it is not tried again
