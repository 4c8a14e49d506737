"""`teho profile --steps`: the very steps, of unchanged programs with real PyTorch."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import teho
from support import TEHO, wait_for
from teho.model.trace import Profiled
from teho.profile.load import Loaded, load
from teho.profile.summary import read_traces

LOOPS = Path(__file__).parents[2] / "benchmarks" / "profile_loops.py"
SOURCES = str(Path(teho.__file__).parents[1])
Call = Callable[..., subprocess.CompletedProcess[str]]

TRAINING = """
import sys, time, torch
from torch import nn
torch.set_num_threads(1)
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps, then=lambda number: None):
    for number in range(1, steps + 1):
        with torch.profiler.record_function("loop step %d" % number):
            model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        then(number)
"""


@pytest.fixture
def profile(teho: Call, torch_python: Path, tmp_path: Path) -> Call:
    """Profile a program, given as its text."""

    def call(code: str, *options: str) -> subprocess.CompletedProcess[str]:
        program = tmp_path / "train.py"
        program.write_text(TRAINING + code)
        return teho("profile", *options, "--", torch_python, program)

    return call


def run_of(home: Path) -> Path:
    """Return the directory of the only run."""
    (run,) = (home / "runs").iterdir()
    return run


def traces_of(home: Path) -> list[Path]:
    return sorted((run_of(home) / "traces").glob("*")) if (run_of(home) / "traces").exists() else []


def loop_steps(loaded: Loaded) -> list[int]:
    """Return the numbers of the steps that the loop itself has marked."""
    found = (re.fullmatch(r"loop step (\d+)", mark.name) for mark in loaded.marks)
    return sorted(int(match[1]) for match in found if match)


@pytest.mark.parametrize(
    ("name", "per_step"),
    [("accumulation", 4), ("gan", 1), ("evaluation", 1), ("told", 1)],
)
def test_the_trace_has_the_very_steps(
    name: str, per_step: int, teho: Call, torch_python: Path, home: Path
) -> None:
    done = teho(
        "profile", "--steps", "12:15", "--", torch_python, LOOPS, name, "20",
        env={"PYTHONPATH": SOURCES},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (path,) = traces_of(home)
    loaded = load(path)
    assert loop_steps(loaded) == sorted([12, 13, 14] * per_step)
    marks = sorted(mark.name for mark in loaded.marks if mark.name.startswith("ProfilerStep"))
    assert marks == ["ProfilerStep#12", "ProfilerStep#13", "ProfilerStep#14"]
    assert read_traces([path]).traces[0].step_count == 3
