"""Frames of a run while its recording changes."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from support import wait_for
from teho.config.settings import Settings
from teho.model.live import LiveSample
from teho.model.run import FORMAT_VERSION, Node, Run, Step
from teho.observe.publisher import Publisher
from teho.show.top import live as live_module
from teho.show.top.live import LiveSource
from teho.store.layout import create_run_directory, lease_folder, node_file, replace_file
from teho.store.read import supervisor_stamp

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


def test_nodes_that_begin_later_find_the_lease_and_are_shown_without_values_until_then(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease is there before the first recorder, which may have another form of its name."""
    monkeypatch.setattr(live_module.sys, "setswitchinterval", lambda _: None)
    step = Step(key="slurm-1-attached", started_by="Slurm", began_on="n1", task_count=1,
                node_count=2, hosts=("localhost", "n2"))  # fmt: skip
    began = datetime.now(timezone.utc)
    description = Run(
        format=FORMAT_VERSION, id="20261126-080000-late-aaaa", command=("x",), started_at=began,
        host=os.uname().nodename, supervisor_pid=os.getpid(),
        supervisor_stamp=supervisor_stamp(os.getpid()), step=step,
    )  # fmt: skip
    run = create_run_directory(home, description.id, msgspec.json.encode(description))
    with contextlib.closing(LiveSource(run, Settings(), waits=False)) as source:
        source.poll()
        assert not source.has_begun
        assert [node.node.name for node in source.frame().nodes] == ["localhost", "n2"]
        assert all(node.is_silent for node in source.frame().nodes)
        (lease,) = lease_folder(run).iterdir()
        assert msgspec.json.decode(lease.read_bytes())["addresses"]
        name = "localhost.example.org"
        node = Node(name=name, started_at=began, period_s=1.0)
        replace_file(node_file(run, name), msgspec.json.encode(node))
        publisher = Publisher(run, name, 2)
        row = {"kind": "node", "device": "node", "cpu_busy_percent": 50.0}

        def has_come() -> bool:
            now_s = time.monotonic()
            if publisher.watching(now_s):
                publisher.publish(LiveSample(node=name, elapsed_s=now_s, rows=[row]), now_s)
            source.poll()
            return source.frame().nodes[0].elapsed_s is not None

        wait_for(has_come)
        publisher.close()
        assert not source.is_complete
        first, second = source.frame().nodes
        assert first.node.name == name
        assert first.values["cpu_busy_percent"] == 50.0
        assert second.node.name == "n2"
        assert second.is_silent
        # The report begins when a node has come, and not ten seconds later.
        wait_for(lambda: (source.poll(), not source.frame().report.verdict.startswith("Teho"))[1])
