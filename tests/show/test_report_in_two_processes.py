"""The report of many GPUs is made by two processes; it is the same report."""

from __future__ import annotations

import subprocess
import sys
from array import array
from pathlib import Path

import msgspec
import pytest

from teho.config.settings import Settings
from teho.explain.bin_means import BinMeans
from teho.model.summary import GpuSummary
from teho.process import parallel_map
from teho.show import loaded as loaded_module
from teho.show.build.report import plots as plots_module
from teho.show.html import page as page_module
from teho.show.html.page import render_html
from teho.show.loaded import LoadedRun

RUNS = sorted((Path(__file__).parents[2] / "examples/runs").glob("*/run.json"))


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let this process fork, although it may have one core and other threads; count the forks."""
    counted: list[int] = []
    share = parallel_map._Share

    def start(*arguments: object, **options: object) -> object:
        counted.append(1)
        return share(*arguments, **options)

    monkeypatch.setattr(parallel_map, "_Share", start)
    monkeypatch.setattr(parallel_map, "_may_fork", lambda: True)
    monkeypatch.setattr(parallel_map.os, "sched_getaffinity", lambda _: {0, 1})
    return counted


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_two_processes_make_the_same_report_and_page(
    path: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = LoadedRun(path.parent, Settings()).view
    page = render_html(alone)
    before = len(forks)
    monkeypatch.setattr(loaded_module, "_MANY_GPUS", 0)
    monkeypatch.setattr(page_module, "_MANY_ROWS", 0)
    shared = LoadedRun(path.parent, Settings())
    assert shared.view == alone
    assert render_html(shared.view) == page
    assert len(forks) >= before + 2
    # The findings are known now: no other process judges the run again.
    known = len(forks)
    assert shared.view_with(plots=False).findings == alone.findings
    assert len(forks) == known


def without_gaps(gpu: GpuSummary) -> GpuSummary:
    series = {
        metric: array("d", [value or 0.0 for value in values])
        for metric, values in gpu.series.items()
    }
    return msgspec.structs.replace(gpu, series=BinMeans(series))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.parent.name)
def test_the_quick_mean_of_the_gpus_of_a_node_is_the_mean(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plots_module, "_MOST_LINES", 0)
    summary = LoadedRun(path.parent, Settings()).summary
    nodes = tuple(
        msgspec.structs.replace(node, gpus=tuple(map(without_gaps, node.gpus)))
        for node in summary.nodes
    )
    summary = msgspec.structs.replace(summary, nodes=nodes)
    assert plots_module.mean_of_devices([gpu.series for gpu in summary.gpus]) is not None
    quick = list(plots_module.plots_of(summary))
    monkeypatch.setattr(plots_module, "mean_of_devices", lambda _: None)
    slow = list(plots_module.plots_of(summary))
    assert [plot.key for plot in quick] == [plot.key for plot in slow]
    for one, other in zip(quick, slow, strict=True):
        assert [line.label for line in one.series] == [line.label for line in other.series]
        if one.group == "GPU":
            for line, wanted in zip(one.series, other.series, strict=True):
                assert line.values == pytest.approx(wanted.values, rel=1e-4)


THREADS = """
import sys, threading
sys.setswitchinterval(1e-6)
from pathlib import Path
from teho.config.settings import Settings
from teho.show.loaded import LoadedRun
said = []
def read():
    said.append(len(LoadedRun(Path(sys.argv[1]), Settings()).findings))
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(said), len(set(said)))
"""


def test_several_threads_read_a_recording_at_the_same_moment() -> None:
    """msgspec crashes if two threads decode a type for the first time at the same moment."""
    directory = str(RUNS[0].parent)
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", THREADS, directory], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (0, "8 1\n"), done.stderr[-500:]
