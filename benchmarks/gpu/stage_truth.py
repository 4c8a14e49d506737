"""Small programs whose true figures are known beforehand: what Teho reported, and the truth.

Only one part of a run is compared: from the first sample after the program began its work to the
end of this work. The start of the frameworks is not included. The truth is the program's own count,
divided by the time on its own clock. Peak speeds are from the maker's documents.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from result import Row

from stage import Rows, Stage, missing_words
from teho.config.settings import Settings
from teho.explain.peaks import Peaks, peaks_of
from teho.model.device import Device
from teho.show.loaded import LoadedRun

WORKLOADS = (
    "idle",
    "block",
    "matmul-bf16",
    "matmul-tf32",
    "matmul-fp32",
    "matmul-fp64",
    "copy",
    "stream",
    "saw-0.2",
    "saw-1",
    "saw-5",
    "tiny",
    "holds",
)
_ALL_THE_TIME = ("block", "matmul-bf16", "matmul-tf32", "matmul-fp32", "matmul-fp64", "copy")
_RATES = {
    "matmul-bf16": ("gpu_tensor_percent", "tensor_16bit_tflops"),
    "matmul-tf32": ("gpu_tensor_percent", "tensor_tf32_tflops"),
    "matmul-fp32": ("gpu_fp32_percent", "fp32_tflops"),
    "matmul-fp64": ("gpu_tensor_percent", "tensor_fp64_tflops"),
}
"""The pipe that a product of matrices keeps active, and the peak speed of this pipe."""
_SETTLES_S = 1.2
"""After this time, no sample covers the time before the program began its work."""


def measure(stage: Stage) -> None:
    """Do a piece for each workload."""
    for name in WORKLOADS:
        stage.piece(name, lambda name=name: _workload(stage, name), least_s=35)


def _workload(stage: Stage, name: str) -> Rows:
    seconds = 20.0 if name == "saw-5" else 10.0
    argv = stage.program("workload", name, stage.seconds(seconds, 2.0))
    path, output = stage.record(name, argv)
    stage.keep(path, name)
    told = json.loads(output.splitlines()[-1])
    window = Window(path, told["began"], told["ended"], stage.signals())
    peaks = _peaks(stage)
    yield window.row("gpu_busy_percent", *_busy(name, told))
    yield from _parts(name, told, window)
    if name in _RATES:
        yield from _rate(name, told, window, peaks, stage.gpu_name)
    if name == "copy":
        yield _memory(told, window, peaks, stage.gpu_name)
    if name == "stream":
        rate = told["bytes_a_call"] * told["count"] / told["elapsed_s"]
        yield window.row("gpu_pcie_receive_bytes_per_s", rate, "rate of the program's copies")
    yield from window.energy()


def _busy(name: str, told: Mapping[str, float]) -> tuple[float | None, str]:
    """Return the share of the time in which a kernel ran [%], and how it is known."""
    if name in {"idle", "holds"}:
        return 0.0, "no kernel was started"
    if name.startswith("saw"):
        return 100 * told["busy_s"] / told["elapsed_s"], "measured with the program's clock"
    if name in _ALL_THE_TIME:
        return 100.0, "kernels follow each other without a pause"
    return None, "the true value is not known beforehand"


def _parts(name: str, told: Mapping[str, float], window: Window) -> Rows:
    """Yield the rows of multiprocessors, processes and memory."""
    parts = told.get("multiprocessors")
    if name == "block":
        share = 100 / parts if parts else None
        yield window.row("gpu_sm_active_percent", share, f"1 of {parts or '?'} multiprocessors")
    elif name == "tiny":
        share = 100 / parts if parts else None
        yield window.row("gpu_sm_active_percent", share, "at most: a kernel has only one block")
        launches = told["count"] / told["elapsed_s"]
        yield Row("kernels started", "1/s", other=round(launches), whose="truth")
    elif name.startswith(("matmul", "saw")):
        yield window.row("gpu_sm_active_percent", None, "the true value is not known beforehand")
    if name in {"idle", "holds"}:
        expected = 0 if name == "idle" else 1
        yield window.row("gpu_job_processes", expected, "processes with a context on the GPU")
    if name == "holds":
        held = told["held_bytes"]
        yield window.row("gpu_job_memory_bytes", held, "at least: the context needs memory too")


def _rate(
    name: str, told: Mapping[str, float], window: Window, peaks: Peaks | None, model: str
) -> Rows:
    """Yield how active the pipe was, and the achieved rate as a share of the peak rate."""
    metric, field = _RATES[name]
    achieved = told["flop_a_call"] * told["count"] / told["elapsed_s"]
    peak = peaks.flop_per_s(field) if peaks else None
    share = None if peak is None else 100 * achieved / peak
    of = f"of {peak / 1e12:.0f} TFLOP/s" if peak else f"no peak of {model} is known"
    yield window.row(metric, share, f"achieved: {achieved / 1e12:.4g} TFLOP/s, {of}")
    if metric != "gpu_tensor_percent":
        yield window.row("gpu_tensor_percent", 0.0, "no tensor core computes in this precision")
    if name == "matmul-fp64":
        yield window.row("gpu_fp64_percent", None, "the library may use tensor cores instead")
    yield window.row("gpu_sm_clock_mhz", None, "the peak speed is the speed at the highest clock")


def _memory(told: Mapping[str, float], window: Window, peaks: Peaks | None, model: str) -> Row:
    achieved = told["bytes_a_call"] * told["count"] / told["elapsed_s"]
    share = 100 * achieved / peaks.memory_bytes_per_s if peaks else None
    of = f"of {peaks.memory_gb_per_s:.0f} GB/s" if peaks else f"no peak of {model} is known"
    why = f"achieved: {achieved / 1e9:.4g} GB/s read and written, {of}"
    return window.row("gpu_dram_percent", share, why)


def _peaks(stage: Stage) -> Peaks | None:
    told = stage.devices["devices"][0]
    known = {name: told[name] for name in ("id", "index", "name", "vendor") if name in told}
    return peaks_of(Device(**known))


@dataclass
class Window:
    """The samples of a recording's first GPU in the time in which a workload worked."""

    path: Path
    began: float
    ended: float
    """Both in Unix time [s]."""
    signals: Mapping[str, Any]
    """What `teho devices` said; it has the reason for each missing signal."""

    def __post_init__(self) -> None:
        rows = LoadedRun(self.path, Settings()).table("gpu").to_pylist()
        first = self.began + _SETTLES_S
        inside = [row for row in rows if first <= row["time"].timestamp() <= self.ended]
        self._rows = [row for row in inside if row["device"] == inside[0]["device"]]

    def values(self, metric: str) -> list[float]:
        """Return the readings of a metric."""
        return [row[metric] for row in self._rows if row[metric] is not None]

    def row(self, metric: str, truth: float | None, why: str = "") -> Row:
        """Return the mean of a metric beside the truth."""
        values = self.values(metric)
        reason = missing_words(self.signals.get(metric)) or "no sample has this metric"
        return Row(
            metric,
            teho=round(statistics.fmean(values), 3) if values else None,
            other=None if truth is None else round(truth, 3),
            whose="truth",
            why="; ".join(filter(None, ("" if values else reason, why))),
        )

    def energy(self) -> Rows:
        """Yield the energy of the counter, and power multiplied by time."""
        counted = [
            (row["time"].timestamp(), row["gpu_energy_j"], row["gpu_power_w"])
            for row in self._rows
            if row["gpu_energy_j"] is not None and row["gpu_power_w"] is not None
        ]
        if len(counted) < 2:
            yield Row("energy", "J", why="fewer than two samples have energy and power")
            return
        times, energy, power = zip(*counted, strict=True)
        integral = sum(
            (late - early) * (one + other) / 2
            for early, late, one, other in zip(times, times[1:], power, power[1:], strict=False)
        )
        yield Row(
            "energy", "J", teho=round(energy[-1] - energy[0], 1), other=round(integral, 1),
            whose="power multiplied by time", why=f"over {times[-1] - times[0]:.1f} s",
        )  # fmt: skip
