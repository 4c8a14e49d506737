"""`teho top` while something goes wrong: a dead recorder, a clock that jumps."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from recorded_program import recorded, rows_of
from support import TEHO, wait_for
from teho.model.run import Node
from terminal import keys, screen, terminal

STUBS = Path(__file__).parents[1] / "stubs"
HOUR_S = 3600


def recorder_of(home: Path) -> int:
    (path,) = home.glob("runs/[!.]*/nodes/*.json")
    pid = msgspec.json.decode(path.read_bytes(), type=Node).recorder_pid
    assert pid is not None
    return pid


def test_a_killed_recorder_is_a_silent_node_and_the_program_continues(home: Path) -> None:
    here = os.uname().nodename
    with recorded(home), terminal(" ".join([*TEHO, "top"]), 100, 30) as tmux:
        wait_for(lambda: f"▶ {here}" in screen(tmux))
        wait_for(lambda: f"{here}  has sent no" not in screen(tmux))
        os.kill(recorder_of(home), signal.SIGKILL)
        # After 12 s over a connection; a slow machine may have used the files, and 24 s.
        wait_for(lambda: "has sent nothing for " in screen(tmux), 60)
        (line,) = [one for one in screen(tmux).splitlines() if one.startswith(f"▶ {here}")]
        assert "%" not in line  # no value that may have changed
        keys(tmux, "Enter")
        wait_for(lambda: "newest sample of this node is missing or too old" in screen(tmux))
        assert "Cores busy" not in screen(tmux)
        keys(tmux, "Escape")
        wait_for(lambda: f"▶ {here}" in screen(tmux))
        (node,) = home.glob("runs/[!.]*/nodes/*.json")
        program = msgspec.json.decode(node.read_bytes(), type=Node).program_pid
        assert Path(f"/proc/{program}").exists()
        keys(tmux, "q")


@contextmanager
def documents(environment: dict[str, str]) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the documents of `teho top --format json`."""
    argv = [*TEHO, "top", "--format", "json"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as top:
        assert top.stdout is not None
        try:
            yield map(json.loads, top.stdout)
        finally:
            top.terminate()


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wall clock that can be set for some processes."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a clock with")
    library = tmp_path_factory.mktemp("clock") / "jumping_clock.so"
    source = STUBS / "jumping_clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.mark.parametrize("whose", ["recorder", "viewer"])
def test_a_wall_clock_that_jumps_changes_no_age_and_no_rate(
    home: Path, tmp_path: Path, clock: Path, whose: str
) -> None:
    jump = tmp_path / "jump"
    jump.write_text("0")
    jumping = {"LD_PRELOAD": str(clock), "JUMP_FILE": str(jump)}
    now = subprocess.run(
        ["date", "+%s"], env={**os.environ, **jumping}, capture_output=True, check=True, text=True
    )
    jump.write_text(str(HOUR_S))
    later = subprocess.run(
        ["date", "+%s"], env={**os.environ, **jumping}, capture_output=True, check=True, text=True
    )
    assert int(later.stdout) - int(now.stdout) in range(HOUR_S, HOUR_S + 60)
    jump.write_text("0")
    of_recorder, of_viewer = (jumping if whose == one else {} for one in ("recorder", "viewer"))
    with recorded(home, environment=of_recorder), documents(of_viewer) as shown:
        for document in shown:  # until samples come over a connection
            if rows_of(document, "nodes_now")[0]["age"] < 2:
                break
        for jump_s in (HOUR_S, -HOUR_S, 0):
            jump.write_text(str(jump_s))
            for _ in range(3):
                document = next(shown)
                (row,) = rows_of(document, "nodes_now")
                assert document["state"] == "running", (whose, jump_s)
                assert 0 <= row["age"] < 5, (whose, jump_s)
                assert isinstance(row["cpu"], float), row
                # A rate is an increase divided by a time: `sleep` uses no core.
                assert 0 <= row["used"] < 1, row
    (run,) = home.glob("runs/[!.]*")
    end = json.loads((run / "run.json").read_bytes())["end"]
    assert 0 < end["elapsed_s"] < 120
