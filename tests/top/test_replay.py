"""A finished run as it was."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from support import wait_for
from teho.config.settings import Settings
from teho.model.document import Fact
from teho.model.run import Node
from teho.show.top import replay as replay_module
from teho.show.top.head import head
from teho.show.top.job import JobLines
from teho.show.top.live import LiveSource
from teho.show.top.replay import ReplaySource
from teho.store.read import rows_of_node
from top.large_run import run_of_512_gpus

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


@pytest.fixture
def three_nodes(tmp_path: Path) -> Path:
    """A run on three nodes with the same rows."""
    run = tmp_path / "run"
    shutil.copytree(EXAMPLE, run)
    first = msgspec.json.decode((run / "nodes/g1.json").read_bytes(), type=Node)
    for name in ("g2", "g3"):
        node = msgspec.structs.replace(first, name=name)
        (run / f"nodes/{name}.json").write_bytes(msgspec.json.encode(node))
        shutil.copy(run / "samples/g1.parquet", run / f"samples/{name}.parquet")
    return run


def test_the_first_frame_has_the_nodes_that_are_read(
    three_nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "_LONGEST_S", -1.0)
    source = ReplaySource(three_nodes, Settings(), 60.0)
    frame = source.frame()
    assert [node.node.name for node in frame.nodes] == ["g1"]
    assert frame.notes == ("replay at 60 times the speed", "1 of 3 nodes read")
    assert frame.report.verdict_severity == "unknown"
    source.poll(reads_all=True)
    frame = source.frame()
    assert [node.node.name for node in frame.nodes] == ["g1", "g2", "g3"]
    assert frame.notes == ("replay at 60 times the speed",)


def test_the_verdict_follows_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    moment_s = 0.0
    monkeypatch.setattr(replay_module, "time", SimpleNamespace(monotonic=lambda: moment_s))
    source = ReplaySource(EXAMPLE, Settings(), 1.0)
    moment_s = 12.5
    frame = source.frame()
    assert frame.elapsed_s == 12.5
    assert frame.nodes[0].age_s == 0.0
    assert "verdict and the energy follow at the end" in " ".join(frame.report.verdict.split())
    gpu = frame.nodes[0].gpus[0]
    assert gpu.values["gpu_busy_percent"] == _busy(gpu.device.id, 12.5)
    moment_s = 1e9
    wait_for(lambda: source.frame().report.verdict.startswith("GPU 3 on g1 was never used."))
    last = source.frame()
    assert last.elapsed_s == source.at_s < 1e9
    # Not the sample from after the end of the program, which lacks the memory.
    (node,) = last.nodes
    assert isinstance(node.values["job_memory_bytes"], (int, float))
    assert isinstance(node.values["job_cpu_s"], float)
    assert not node.is_silent


def _busy(device: str, moment_s: float) -> float:
    columns = ["device", "elapsed_s", "span_s", "gpu_busy_percent"]
    rows = pq.ParquetFile(EXAMPLE / "samples/g1.parquet").read(columns=columns).to_pylist()
    (row,) = [
        row for row in rows
        if row["device"] == device
        and row["elapsed_s"] - row["span_s"] <= moment_s <= row["elapsed_s"]
    ]  # fmt: skip
    value: float = row["gpu_busy_percent"]
    return value


@pytest.fixture(scope="module")
def of_512_gpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_of_512_gpus(tmp_path_factory.mktemp("large"))


def test_a_recording_of_512_gpus_is_played_before_all_of_it_is_read(of_512_gpus: Path) -> None:
    source = ReplaySource(of_512_gpus, Settings(), 60.0)
    assert 0 < len(source.frame().nodes) <= 64
    wait_for(lambda: (source.poll(), len(source.frame().nodes) == 64)[1])
    gpus = [gpu for node in source.frame().nodes for gpu in node.gpus]
    assert len(gpus) == 512
    assert all(isinstance(gpu.values["gpu_busy_percent"], float) for gpu in gpus)
    source.close()


def test_the_lines_of_all_nodes_need_no_other_columns(
    of_512_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []

    def counted(*arguments: Any, problems: list[str]) -> Any:
        read.append(list(arguments[3]))
        return rows_of_node(*arguments, problems=problems)

    monkeypatch.setattr("teho.store.moments.rows_of_node", counted)
    source = ReplaySource(of_512_gpus, Settings(), 60.0)
    source.poll(reads_all=True)
    text = "".join(row.line.plain for row in JobLines().view(source.frame().nodes, 120).rows)
    assert text.count("MiB") == 64
    # The columns of 64 nodes, and of their GPUs. All columns of 512 GPUs need 1 GB of memory.
    assert len(read) == 128
    assert all(len(columns) < 12 for columns in read)


def test_a_recording_of_512_gpus_is_opened_before_its_report_is_made(
    of_512_gpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teho.show.top.live.sys.setswitchinterval", lambda _: None)
    with contextlib.closing(LiveSource(of_512_gpus, Settings(), waits=False)) as source:
        frame = source.frame()
        assert frame.report.verdict == "Teho is making the report of the run so far."
        assert sum(len(node.gpus) for node in frame.nodes) == 512
        wait_for(lambda: (source.poll(), "never used" in source.frame().report.verdict)[1])


def test_the_pace_and_the_cost_are_those_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    moment_s = 0.0
    monkeypatch.setattr(replay_module, "time", SimpleNamespace(monotonic=lambda: moment_s))
    monkeypatch.setattr(
        replay_module, "facts_at", lambda _, summary, at_s: [Fact("cost", "Cost", at_s, "units")]
    )
    source = ReplaySource(EXAMPLE, Settings(), 1.0)
    wait_for(lambda: source._is_summed)
    for moment_s in (12.5, 40.0):
        facts = {fact.key: fact.value for fact in source.frame().report.facts}
        assert facts["cost"] == moment_s
        assert head(source.frame(), 200)[-1].plain.endswith(f"cost {moment_s:g} units")
    # At the end, they are those of the report.
    moment_s = 1e9
    wait_for(lambda: source._whole)
    assert "cost" not in {fact.key for fact in source.frame().report.facts}
