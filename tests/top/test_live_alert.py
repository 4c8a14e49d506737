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
from teho.explain.present import InputWait
from teho.model.document import Finding
from teho.model.run import RunState
from teho.show.top.head import head
from teho.show.top.live import LiveSource
from teho.store.layout import run_file

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
    source._input_wait = time.monotonic(), InputWait(80.0, 60.0)
    assert source.frame().alert == "Waiting for input 80 % of the last minute."
    source._input_wait = time.monotonic() - 100.0, InputWait(80.0, 60.0)
    assert source.frame().alert == ""
