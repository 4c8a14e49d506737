"""Gradient descent in every library: the same coefficients, and those of least squares."""

from __future__ import annotations

import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from served import PROGRAMS, serve
from standins import with_cupy

from support import FRAMEWORKS, lacks_framework

POINTS = [
    {"samples": 1000, "variables": 1, "iterations": 100},
    {"samples": 500, "variables": 20, "iterations": 250},
]


@pytest.fixture
def regression(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import the program, which finds its neighbours beside it."""
    monkeypatch.syspath_prepend(PROGRAMS)
    return importlib.import_module("regression")


def test_steps_lead_to_least_squares(regression: ModuleType) -> None:
    point = {"samples": 1000, "variables": 3, "iterations": 5000, "precision": "fp64"}
    x, y = regression.make_data(1000, 3, "float64")
    with serve("regression", "numpy") as program:
        found = program.figures(point)
    np.testing.assert_allclose(found[:4], np.linalg.lstsq(x, y)[0], rtol=1e-6)


@pytest.mark.parametrize("variables", [1, 10, 300])
def test_no_step_overshoots(regression: ModuleType, variables: int) -> None:
    x, _ = regression.make_data(1000, variables, "float64")
    largest = np.linalg.eigvalsh(2 / len(x) * x.T @ x)[-1]
    assert regression.learning_rate(variables) * largest < 2


@pytest.mark.drawn(1, by="library", always=("numpy",))
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_loops_agree_in_all_libraries(library: str) -> None:
    with serve("regression", "numpy") as reference, serve("regression", library) as program:
        for point in POINTS:
            expected = reference.figures({**point, "precision": "fp64"})
            assert len(expected) == 2 * (point["variables"] + 1)
            np.testing.assert_allclose(program.figures(point), expected, rtol=1e-4)


@pytest.mark.parametrize(
    ("library", "loops"),
    [("numpy", ["python loop"]), ("jax", ["python loop", "fused loop"])],
)
def test_loops_are_timed_separately_and_from_end_to_end(library: str, loops: list[str]) -> None:
    with serve("regression", library) as program:
        phases = program.phases({"samples": 100, "variables": 4, "iterations": 10})
    assert list(phases) == [*loops, "end to end"]
    for phase in phases.values():
        assert phase["flop"] == 4 * 10 * 100 * 5
        assert phase["bytes"] == 2 * 10 * 100 * 5 * 4


def test_cupy_takes_the_same_steps_and_its_copy_is_timed(tmp_path: Path) -> None:
    point = POINTS[0]
    with (
        serve("regression", "numpy") as reference,
        serve("regression", "cupy", "gpu", env=with_cupy(tmp_path)) as program,
    ):
        assert program.figures(point) == reference.figures(point)
        phases = program.phases(point)
    assert list(phases) == ["python loop", "copy in", "end to end"]
    assert phases["copy in"]["bytes"] == 1000 * (2 + 1) * 4


_ON_A_CPU = '''
"""The recording of a CUDA graph, driven by a stand-in that repeats a CPU's operations."""
import contextlib, sys
import torch
from torch.utils._python_dispatch import TorchDispatchMode
sys.path.insert(0, sys.argv[1])
import regression

class Graph:
    replays = 0
    def replay(self):
        self.replays += 1
        for function, arguments, keywords, result in self.calls:
            again = function(*arguments, **keywords)
            if again is not result:
                result.copy_(again)

class Recorder(TorchDispatchMode):
    def __init__(self, graph):
        super().__init__()
        graph.calls = self.calls = []
        graphs.append(graph)
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if not function.is_view:
            self.calls.append((function, arguments, keywords or {}, result))
        return result

class Stream:
    def wait_stream(self, other): pass

graphs = []
torch.cuda.CUDAGraph, torch.cuda.graph = Graph, Recorder
torch.cuda.Stream = torch.cuda.current_stream = Stream
torch.cuda.stream = contextlib.nullcontext

def straight(x, y, iterations):
    beta = torch.zeros(x.shape[1])
    for _ in range(iterations):
        beta = regression.update(beta, x, y, 0.1)
    return beta

loop = regression._CudaGraph(torch, 0.1, 250)
for seed in (0, 1):
    torch.manual_seed(seed)
    x, y = torch.rand(50, 3), torch.rand(50)
    for _ in range(2):
        torch.testing.assert_close(loop(x, y), straight(x, y, 250))
print(len(graphs), graphs[0].replays)
'''


@pytest.mark.skipif(bool(lacks_framework("torch")), reason=lacks_framework("torch"))
def test_graph_is_recorded_once_and_takes_other_data(tmp_path: Path) -> None:
    script = tmp_path / "graph.py"
    script.write_text(_ON_A_CPU, encoding="utf-8")
    done = subprocess.run(
        [str(FRAMEWORKS / "bin" / "python"), str(script), str(PROGRAMS)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # 250 updates are 5 times a graph of 50, for each of four calls.
    assert done.stdout.split() == ["1", "20"]
