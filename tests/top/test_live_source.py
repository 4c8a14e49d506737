"""Frames of a run while its recording changes."""

from __future__ import annotations

import shutil
from pathlib import Path

from teho.config.settings import Settings
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
