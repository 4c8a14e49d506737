"""Whether a run goes on: by its supervisor here, by its files elsewhere."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from teho.config.settings import Settings
from teho.model.run import FORMAT_VERSION, Run, RunState
from teho.show.loaded import LoadedRun
from teho.store.layout import create_run_directory, new_run_id, node_file
from teho.store.read import run_state, supervisor_stamp

START = datetime(2026, 11, 20, 10, 0, tzinfo=timezone.utc)


def recorded(home: Path, **said: object) -> tuple[Run, Path]:
    run = Run(
        format=FORMAT_VERSION, id=new_run_id(START, "x"), command=("x",), started_at=START, **said
    )
    return run, create_run_directory(home, run.id, msgspec.json.encode(run))


@pytest.mark.parametrize(
    ("period_s", "silent_s", "state"),
    [
        (1.0, 60, RunState.RUNNING),
        (1.0, 120, RunState.INTERRUPTED),
        (300.0, 330, RunState.RUNNING),
        (300.0, 420, RunState.INTERRUPTED),
    ],
)
def test_elsewhere_a_run_is_cut_off_when_a_sample_is_overdue(
    home: Path, period_s: float, silent_s: float, state: RunState
) -> None:
    run, directory = recorded(home, host="elsewhere", period_s=period_s)
    path = node_file(directory, "elsewhere")
    path.write_text("{}")
    os.utime(path, (time.time() - silent_s,) * 2)
    assert run_state(run, directory) is state


def test_a_run_that_ends_while_it_is_reported_on_was_not_cut_off(home: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        _, directory = recorded(
            home,
            host=os.uname().nodename,
            supervisor_pid=process.pid,
            supervisor_stamp=supervisor_stamp(process.pid),
        )
        loaded = LoadedRun(directory, Settings())
        process.kill()
    assert loaded.state is RunState.RUNNING
