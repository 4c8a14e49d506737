"""Real programs that are stuck or wait for input, as `teho top` shows them.

The times that a report looks back are 45 s and more. Here they are some seconds, so that a program
that has waited for some seconds is judged as one that has waited for a minute.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from recorded_program import recorded
from support import FRAMEWORKS, WITHOUT_COMPILER, lacks_framework, wait_for
from terminal import keys, screen, terminal

SOON = """
import sys
from teho.cli import main
from teho.explain import pace
from teho.store import slices
slices._END_S = float(sys.argv.pop(1))
pace._RECENT_S = 15.0  # the probe writes the steps each 10 s
sys.argv[0] = "teho"
main()
"""
"""`teho` for which the last seconds of a program are its last minute."""
THRESHOLDS = """
[run_stuck]
silent_min_s = 1.5
no_steps_min_s = 1.5
"""
TWO_LOCKS = """
import threading, time, teho
first, second = threading.Lock(), threading.Lock()
def snapshot():
    with second:
        time.sleep(0.6)
        with first: pass
threading.Thread(target=snapshot, daemon=True).start()
with first:
    for _ in range(30):
        teho.step()
        time.sleep(0.01)
    second.acquire()
"""
STUCK = (
    r"The run is stuck: no step for [\d.]+ (?:s|min)\. The program waits in `second\.acquire\(\)` "
    r"\(locks\.py:13\), and another thread of it waits for a lock in `with first: pass` "
    r"\(locks\.py:7\)\."
)
SLOW_LOADER = """
import time, torch
from torch.utils.data import DataLoader, Dataset
class Files(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, number):
        time.sleep(0.02)
        return torch.ones(4)
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in DataLoader(Files(), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


def first_verdict(command: list[str], environment: dict[str, str], pattern: str) -> re.Match[str]:
    """Return the first verdict of `teho top --format json` that has a pattern."""
    with subprocess.Popen(
        [*command, "--format", "json"], env=environment, stdout=subprocess.PIPE, text=True
    ) as top:
        assert top.stdout is not None
        try:
            for _ in range(90):
                verdict = json.loads(top.stdout.readline())["verdict"]
                if found := re.match(pattern, verdict):
                    return found
        finally:
            top.terminate()
    raise AssertionError(verdict)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="threads have no numbers before Python 3.11")
def test_a_run_that_is_stuck_is_the_first_line_with_its_lines(home: Path, tmp_path: Path) -> None:
    program, teho, limits = (tmp_path / name for name in ("locks.py", "soon.py", "limits.toml"))
    program.write_text(TWO_LOCKS)
    teho.write_text(SOON)
    limits.write_text(THRESHOLDS)
    command = [sys.executable, str(teho), "1.2", "top"]
    environment = {**os.environ, "TEHO_THRESHOLDS": str(limits)}
    with recorded(home, program=[sys.executable, str(program)]):
        with terminal(" ".join(command), 100, 30, environment) as tmux:

            def flat() -> str:
                return " ".join(screen(tmux).split())

            wait_for(lambda: re.search(STUCK, flat()), 60)
            assert flat().startswith("✗ The run is stuck: no step for ")
            assert "NODE" in flat()  # the values are there too
            keys(tmux, "q")
        assert first_verdict(command, environment, STUCK)


@pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
def test_a_program_that_waits_for_its_loader_is_the_first_sentence(
    home: Path, tmp_path: Path
) -> None:
    program, teho = tmp_path / "train.py", tmp_path / "soon.py"
    program.write_text(WITHOUT_COMPILER + SLOW_LOADER)
    teho.write_text(SOON)
    command = [sys.executable, str(teho), "5", "top"]
    with recorded(home, program=[str(FRAMEWORKS / "bin" / "python"), str(program)]):
        found = first_verdict(command, dict(os.environ), r"Waiting for input (\d+) % of the last ")
    assert 80 <= int(found[1]) <= 100
