"""The recorder passes plans to the probes, and packs their traces into the recording."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from support import wait_for
from teho.observe.run_changes import RunChanges
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
    traces = Traces(str(spool), run, "g1", RunChanges(run, 3))
    traces.check(0.0)
    assert not list(spool.iterdir())
    (run / "plans" / "a.json").write_text("{}")
    os.utime(run, (1, 1))
    traces.check(3.0)  # three nodes look every 4 s
    assert not list(spool.iterdir())
    traces.check(4.0)
    assert (spool / "profile.json").read_text() == "{}"
    (spool / "profile.json").unlink()
    os.utime(run, (2, 2))
    traces.check(8.0)
    assert not list(spool.iterdir())


def test_a_plan_waits_for_the_folder_of_the_probes(run: Path, tmp_path: Path) -> None:
    traces = Traces(str(tmp_path / "late"), run, "g1", RunChanges(run, 1))
    (run / "plans" / "a.json").write_text("{}")
    traces.check(0.0)
    (tmp_path / "late").mkdir()
    traces.check(1.0)
    assert (tmp_path / "late" / "profile.json").exists()


def test_traces_are_packed(run: Path, spool: Path) -> None:
    traces = Traces(str(spool), run, "g1", RunChanges(run, 1))
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


def test_a_trace_that_cannot_be_stored_is_reported_and_stays(run: Path, spool: Path) -> None:
    (run / "traces").write_text("not a folder")
    traces = Traces(str(spool), run, "g1", RunChanges(run, 1))
    (spool / "trace-single-1-aa.json").write_bytes(b"x")
    problem = traces.close()
    assert "trace-single-1-aa.json could not be copied into the recording" in problem
    assert (spool / "trace-single-1-aa.json").exists()
    assert traces.collect() == ""  # it is not tried again


def mark(name: str, start_us: float, end_us: float, thread: int = 1) -> dict[str, object]:
    return {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": thread,
            "ts": start_us, "dur": round(end_us - start_us, 3), "args": {}}  # fmt: skip


def as_kineto(*events: dict[str, object]) -> bytes:
    """Return the events as Kineto writes them: times with three decimals."""
    text = json.dumps({"traceEvents": list(events)}, indent=2)
    return re.sub(r'"(ts|dur)": ([\d.]+)', lambda m: f'"{m[1]}": {float(m[2]):.3f}', text).encode()


def packed(run: Path, spool: Path, content: bytes) -> bytes:
    (spool / "trace-single-1-aa.json").write_bytes(content)
    assert Traces(str(spool), run, "g1", RunChanges(run, 1)).close() == ""
    (path,) = newest_traces(run)
    return gzip.decompress(path.read_bytes())


def test_a_step_ends_with_its_optimizer(run: Path, spool: Path) -> None:
    others = [mark("mine", 1, 900), mark("Optimizer.step#SGD.step", 94.5, 99, thread=2)]
    content = as_kineto(
        mark("ProfilerStep#5", 10.25, 95), mark("Optimizer.step#SGD.step", 90, 100.125),
        mark("ProfilerStep#6", 95.5, 190), *others, mark("ProfilerStep#7", 190.5, 300),
        mark("Optimizer.step#SGD.step", 290, 400),
    )  # fmt: skip
    expected = as_kineto(
        mark("ProfilerStep#5", 10.25, 100.125), mark("Optimizer.step#SGD.step", 90, 100.125),
        mark("ProfilerStep#6", 100.125, 190), *others, mark("ProfilerStep#7", 190.5, 300),
        mark("Optimizer.step#SGD.step", 290, 400),
    )  # fmt: skip
    assert packed(run, spool, content) == expected


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        as_kineto(mark("ProfilerStep#5", 10, 95), mark("ProfilerStep#6", 95, 190)),
        # An optimizer that ends after the next step is not moved.
        as_kineto(mark("ProfilerStep#5", 10, 95), mark("ProfilerStep#6", 95, 190),
                  mark("Optimizer.step#SGD.step", 90, 200)),
    ],
)  # fmt: skip
def test_other_traces_stay_as_they_are(run: Path, spool: Path, content: bytes) -> None:
    assert packed(run, spool, content) == content
