"""Frames of a run while its recording changes."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from support import wait_for
from teho.config.settings import Settings
from teho.show.top import live as live_module
from teho.show.top.live import LiveSource

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"


def test_a_recording_that_is_deleted_is_a_note_and_the_last_frame_stays(home: Path) -> None:
    run = home / "runs" / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, run)
    source = LiveSource(run, Settings())
    try:
        verdict = source.frame().report.verdict
        shutil.rmtree(run)
        source._renew()
        frame = source.frame()
        assert frame.report.verdict == verdict
        assert "run.json" in frame.notes[0]
        source.poll()
    finally:
        source.close()


def test_the_first_frame_does_not_wait_for_the_report_of_many_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, run)
    monkeypatch.setattr(live_module, "_FEW_NODES", 0)
    monkeypatch.setattr(live_module, "_FIRST_S", 0.0)
    monkeypatch.setattr(live_module.sys, "setswitchinterval", lambda _: None)
    source = LiveSource(run, Settings(), waits=False)
    try:
        assert source.frame().report.verdict == "Teho is making the report of the run so far."
        source.poll()
        wait_for(lambda: source.frame().report.verdict.startswith("GPU 3 on g1 was never used."))
        # The run has ended, so its report does not change.
        before = source.frame().report
        monkeypatch.setattr(source, "_pause_s", 0.0)
        source.poll()
        assert source.frame().report is before
    finally:
        source.close()
    with contextlib.closing(LiveSource(run, Settings())) as waiting:
        assert waiting.frame().report.verdict == before.verdict
