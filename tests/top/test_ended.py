"""The last frame of a run that has ended stays, however long one looks at it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pyarrow.parquet as pq
import pytest

from profile_traces import path_of
from support import wait_for
from teho.config.settings import Settings
from teho.model.finding import Finding
from teho.model.run import Node, Run
from teho.show.build.top import top_document
from teho.show.loaded import LoadedRun
from teho.show.top import live as live_module
from teho.show.top.frame import Frame
from teho.show.top.head import head
from teho.show.top.job import JobLines
from teho.show.top.live import LiveSource
from teho.show.top.node import node_view
from teho.store.layout import run_file
from teho.store.traces import trace_of

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
DAY_S = 86_400.0


@pytest.fixture
def run(home: Path) -> Path:
    directory = home / "runs" / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, directory)
    return directory


@contextlib.contextmanager
def watched(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveSource]:
    """Watch a run; `later` moves the clock of the viewer."""
    with contextlib.closing(LiveSource(directory, Settings())) as source:
        source.poll(reads_all=True)
        yield source


def a_day_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(
        monotonic=lambda: time.monotonic() + DAY_S, thread_time=time.thread_time
    )
    monkeypatch.setattr(live_module, "time", clock)


def continue_elsewhere(run: Path) -> bytes:
    """Make a run that has ended look as if it continued; return the description with its end."""
    ended = run_file(run).read_bytes()
    described = msgspec.json.decode(ended)
    del described["end"]
    described["host"] = "elsewhere"  # its recorder may be alive
    run_file(run).write_bytes(msgspec.json.encode(described))
    (run / "nodes/g1.json").touch()
    return ended


def add_trace(run: Path) -> None:
    trace = trace_of(run, "g1", "4711-plan.pt.trace.json")
    trace.parent.mkdir()
    shutil.copy(path_of("conv"), trace)


def findings(run: Path) -> tuple[Finding, ...]:
    """Return the findings of the report, which has its verdict from them."""
    return LoadedRun(run, Settings()).view.findings


def lines(frame: Frame) -> list[str]:
    views = [JobLines().view(frame.nodes, 120), node_view(frame, frame.nodes[0].node.name, 120)]
    shown = [row.line.plain for view in views for row in view.rows]
    return [*(line.plain for line in head(frame, 120)), *(view.title.plain for view in views),
            *shown]  # fmt: skip


def test_the_values_of_a_run_that_has_ended_stay(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(run, monkeypatch) as source:
        before = lines(source.frame())
        a_day_later(monkeypatch)
        source.poll(reads_all=True)
        frame = source.frame()
    assert lines(frame) == before
    assert before[0].startswith("✗ GPU 3 on g1 was never used.")
    assert any("at end" in line for line in before)
    assert "at the end of the run" in "\n".join(before)
    (node,) = frame.nodes
    assert not node.is_silent
    assert node.age_s is not None
    assert node.age_s < 2.5


def test_the_tables_of_a_run_that_has_ended(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(run, monkeypatch) as source:
        a_day_later(monkeypatch)
        frame = source.frame()
    document = top_document(frame.report, frame.nodes, frame.notes)
    assert [table.title for table in document.tables] == ["GPUs at the end", "Nodes at the end"]
    gpus, nodes = document.tables
    for row in gpus.rows:
        assert all(isinstance(row[key], (int, float)) for key in ("busy", "memory", "power"))
    # The recorder takes its last sample after the end of the program, so it lacks the memory.
    assert isinstance(nodes.rows[0]["memory"], (int, float))
    assert nodes.rows[0]["used"] == pytest.approx(2.0, abs=0.5)


def test_a_node_that_died_before_the_end_says_when(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = msgspec.json.decode((run / "nodes/g1.json").read_bytes(), type=Node)
    second = msgspec.structs.replace(first, name="g2")
    (run / "nodes/g2.json").write_bytes(msgspec.json.encode(second))
    rows = pq.ParquetFile(run / "samples/g1.parquet").read()
    end_s = msgspec.json.decode(run_file(run).read_bytes(), type=Run).end.elapsed_s
    kept = [at_s <= end_s - 40 for at_s in rows["elapsed_s"].to_pylist()]
    pq.write_table(rows.filter(kept), run / "samples/g2.parquet")
    with watched(run, monkeypatch) as source:
        a_day_later(monkeypatch)
        frame = source.frame()
    (line,) = [line for line in lines(frame) if line.startswith("g2")]
    assert "sent its last sample 4" in line
    assert line.endswith(" s before the end of the run")
    (alive,) = [line for line in lines(frame) if line.startswith("g1")]
    assert alive.endswith("at end")


def test_a_run_without_a_known_end_is_judged_at_its_last_sample(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = msgspec.json.decode(run_file(run).read_bytes())
    del described["end"]
    run_file(run).write_bytes(msgspec.json.encode(described))
    with watched(run, monkeypatch) as source:
        a_day_later(monkeypatch)
        frame = source.frame()
    assert frame.report.state == "interrupted"
    (node,) = frame.nodes
    assert node.age_s == 0.0
    assert not node.is_silent


def test_the_end_is_seen_soon_after_the_last_sample(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only when the next report is due, which may be an hour later in a large job."""
    ended = continue_elsewhere(run)
    monkeypatch.setattr(live_module, "_CHECK_S", 0.1)
    with watched(run, monkeypatch) as source:
        assert source.frame().report.state == "running"
        source._pause_s = DAY_S
        run_file(run).write_bytes(ended)
        wait_for(lambda: (source.poll(), source.frame().report.state == "finished")[1])
        assert source.frame().report.verdict.startswith("GPU 3 on g1 was never used.")


@pytest.mark.parametrize("waits", [True, False])
def test_the_findings_are_those_of_the_report_also_with_a_trace(run: Path, waits: bool) -> None:
    without = findings(run)
    add_trace(run)
    with contextlib.closing(LiveSource(run, Settings(), waits=waits)) as source:
        wait_for(lambda: (source.poll(), not source.awaits_report)[1])
        assert source.frame().report.findings == findings(run) != without


def test_a_trace_is_read_only_after_the_end_of_the_run(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = continue_elsewhere(run)
    without = findings(run)
    add_trace(run)
    monkeypatch.setattr(live_module, "_CHECK_S", 0.1)
    with watched(run, monkeypatch) as source:
        assert source.frame().report.findings == without
        run_file(run).write_bytes(ended)
        wait_for(lambda: (source.poll(), source.frame().report.state == "finished")[1])
        assert source.frame().report.findings == findings(run) != without


def test_the_screen_of_a_run_that_has_ended_stays(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("textual", reason="textual is not installed")
    from teho.show.top.app import TopApp
    from top.test_top_app import screen

    async def drive(source: LiveSource) -> tuple[str, str, str]:
        app = TopApp(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            first = screen(app)
            a_day_later(monkeypatch)
            app._tick()
            await pilot.pause()
            later = screen(app)
            await pilot.press("enter", "enter")
            app._tick()
            await pilot.pause()
            return first, later, screen(app)

    with watched(run, monkeypatch) as source:
        first, later, gpu = asyncio.run(drive(source))
    assert first == later
    assert "at end" in first
    assert "GPU memory used" in gpu
    assert "at the end of the run" in gpu
