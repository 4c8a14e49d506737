"""The sentence about the present moment in frames of a run that goes on."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from teho.config.settings import Settings
from teho.explain.policy import load_policy
from teho.explain.present import InputWait
from teho.model.document import Finding
from teho.model.run import RunState
from teho.show.top import live as live_module
from teho.show.top.head import head
from teho.show.top.live import LiveSource
from teho.store.layout import probe_folder, run_file
from teho.store.long_stays import LongStays

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


@pytest.fixture
def source(tmp_path: Path) -> Iterator[LiveSource]:
    """The run of the example, which goes on; a site's file has a shorter time."""
    run = tmp_path / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, run)
    described = msgspec.json.decode(run_file(run).read_bytes())
    del described["end"]
    run_file(run).write_bytes(msgspec.json.encode({**described, "host": "elsewhere"}))
    for written in (run / "nodes/g1.json", run / "samples/g1.parquet"):
        written.touch()
    limits = tmp_path / "limits.toml"
    limits.write_text("[present]\ngpu_idle_min_s = 60\n")
    settings = Settings(thresholds=str(limits))
    with contextlib.closing(LiveSource(run, settings)) as live:
        live.poll(reads_all=True)
        assert live.frame().report.state == "running"
        yield live


def test_an_idle_gpu_is_the_first_line(source: LiveSource) -> None:
    frame = source.frame()
    assert frame.alert == "GPU 3 on g1 has been idle for 1 min."
    assert head(frame, 100)[0].plain == f"! {frame.alert}"


def test_no_alert_for_a_run_that_is_stuck_or_has_ended(source: LiveSource) -> None:
    report = source._report
    (first, *_) = report.findings
    stuck: Finding = msgspec.structs.replace(first, kind="run_stuck")
    source._report = msgspec.structs.replace(report, findings=(stuck,))
    assert source.frame().alert == ""
    source._report = report
    assert source.frame().alert
    # What it was idle for does not matter any more.
    source._state = RunState.FINISHED
    assert source.frame().alert == ""


def test_an_old_report_says_nothing_about_the_last_minute(
    source: LiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source._idle, "sentence", lambda _: "")
    wait = InputWait(80.0, 45.2).sentence(load_policy())
    source._input_wait = time.monotonic(), wait
    assert source.frame().alert == "Waiting for input 80 % of the last 45 s."
    source._input_wait = time.monotonic() - 100.0, wait
    assert source.frame().alert == ""


def test_a_run_that_may_be_stuck_does_not_wait_for_the_next_report(
    source: LiveSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many nodes, reports are made seldom."""
    monkeypatch.setattr(live_module, "_STAYS_S", 0.0)
    stays = {"process": "7-1", "stays": {"since_s": 100.0, "at_s": 120.0}}
    file = probe_folder(source._directory) / "g1-stacks-5.jsonl"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(msgspec.json.encode(stays) + b"\n")
    source._stays = LongStays(source._directory, [("g1", 7)])
    source._pause_s, before_s = 3600.0, source._reported_s
    source.poll()
    assert source._reported_s == before_s
    with contextlib.suppress(RuntimeError):  # it may look whether the run has ended
        source._reporting.join()
    stays["stays"] = {"since_s": 100.0, "at_s": 146.5}
    with file.open("ab") as more:
        more.write(msgspec.json.encode(stays) + b"\n")
    source.poll()
    source._reporting.join()
    assert source._reported_s > before_s
