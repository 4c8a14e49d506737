"""Compare `teho profile` with Holistic Trace Analysis (HTA) on the same traces.

    python benchmarks/traces.py PYTHON_WITH_HTA TRACE...

PYTHON_WITH_HTA is the Python of an environment with the package HolisticTraceAnalysis. HTA has no
steps here: it takes the time from the first to the last event of the GPU, and Teho does the same.
Each line has the figures of Teho, of HTA, and their difference in % of this time. HTA cuts times to
whole µs, and leaves out the last step, unless it is asked not to, as it is here. It also leaves out
work of the GPU whose launch is not in the trace, and counts `cuda_sync` events, and operators with
an argument `stream`, as work. If a figure differs by more than 1 %, both read a copy without these
events and arguments, and the copy's lines follow.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from teho.errors import TehoError
from teho.profile.device import cpu_of, shortest_delay, timeline
from teho.profile.launches import Lines, launches
from teho.profile.load import load

TIMES = ("idle", "compute", "other", "span", "kernels")
_LAUNCHES = {"cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver"}
_WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
HTA = """\
import json, logging, sys, time, resource
logging.disable(logging.CRITICAL)
begin = time.monotonic()
from hta.trace_analysis import TraceAnalysis
imported = time.monotonic()
analysis = TraceAnalysis(
    trace_files={0: sys.argv[1]}, trace_dir="/", include_last_profiler_step=True
)
temporal = analysis.get_temporal_breakdown(visualize=False).iloc[0]
overlap = analysis.get_comm_comp_overlap(visualize=False).iloc[0]
types, kernels = analysis.get_gpu_kernel_breakdown(
    visualize=False, num_kernels=10**6, duration_ratio=1.0
)
print(json.dumps({
    "idle": float(temporal["idle_time(us)"]),
    "compute": float(temporal["compute_time(us)"]),
    "other": float(temporal["non_compute_time(us)"]),
    "span": float(temporal["kernel_time(us)"]),
    "overlap_percent": float(overlap.iloc[-1]),
    "kernels": float(kernels["sum (us)"].sum()),
    "by_name": {name: float(us) for name, us in kernels.groupby("name")["sum (us)"].sum().items()},
    "s": time.monotonic() - imported,
    "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
}))
"""


def of_teho(path: Path) -> dict[str, float]:
    """Return the same figures as HTA, in µs, for the first device.

    Raises:
        RuntimeError: the trace has no work of a GPU.
    """
    begin = time.monotonic()
    loaded = load(path)
    if not loaded.work:
        raise RuntimeError(f"{path.name} has no work of a GPU")
    cpu = cpu_of(loaded)
    launched = launches(loaded, Lines(loaded), cpu.optimizers)
    work = loaded.work[min(loaded.work)]
    span = min(work.starts), max(work.ends)
    line = timeline(loaded, work, cpu, launched, span, shortest_delay(loaded, launched))
    parts = line.parts(*span)
    return {
        "idle": parts.idle_s * 1e6,
        "compute": parts.compute_s * 1e6,
        "other": (parts.busy_s - parts.compute_s) * 1e6,
        "span": parts.elapsed_s * 1e6,
        "overlap_percent": 100 * parts.hidden_collective_s / parts.collective_s
        if parts.collective_s
        else 0.0,
        "kernels": sum(end - start for start, end in zip(work.starts, work.ends, strict=True))
        / 1e3,
        "s": time.monotonic() - begin,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def of_hta(python: str, path: Path) -> dict[str, Any]:
    """Return HTA's figures.

    Raises:
        RuntimeError: HTA cannot read the trace.
    """
    answer = subprocess.run(
        [python, "-W", "ignore", "-c", HTA, path], capture_output=True, text=True, check=False,
        env={**os.environ, "HTA_DISABLE_NS_ROUNDING": "1"},
    )  # fmt: skip
    if answer.returncode:
        raise RuntimeError(f"HTA, {path.name}: {answer.stderr.strip().splitlines()[-1]}")
    found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def kernels_of_teho(path: Path) -> dict[str, float]:
    """Return the time of each kernel in µs, as `teho profile --format json` prints it.

    Raises:
        RuntimeError: Teho cannot read the trace.
    """
    done = subprocess.run(
        [sys.executable, "-m", "teho", "profile", str(path), "--format", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{path.name}: {done.stderr.strip()}")
    found: dict[str, float] = {}
    # A kernel of the optimizer has a row of its own.
    for one in json.loads(done.stdout)["traces"][0]["kernels"]:
        found[one["name"]] = found.get(one["name"], 0.0) + 1e6 * one["total_s"]
    return found


def largest_by_name(own: Mapping[str, float], peer: Mapping[str, float], span: float) -> float:
    """Return the largest difference between the times of a kernel, in % of the time."""
    # HTA may put its shortest kernels together, as "others".
    names = set(peer) - {"others"} | (set() if "others" in peer else set(own))
    apart = (abs(own.get(name, 0.0) - peer.get(name, 0.0)) for name in names)
    return 100 * max(apart, default=0.0) / span


class Removed(NamedTuple):
    """What only one of the two tools counts as work of the GPU."""

    without_launch: int
    """Kernels and copies whose launch is not in the trace: HTA leaves them out."""
    syncs: int
    """Events `cuda_sync`, which HTA counts."""
    on_cpu: int
    """Operators on the CPU with an argument `stream`, which HTA counts."""


def write_common(path: Path, to: Path) -> Removed:
    """Copy a trace without what only one of the two counts as work, and count this."""
    with gzip.open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    launched = {
        event["args"]["correlation"]
        for event in events
        if event.get("cat") in _LAUNCHES and "correlation" in event.get("args", {})
    }
    syncs = sum(event.get("cat") == "cuda_sync" for event in events)
    trace["traceEvents"] = [
        event
        for event in events
        if event.get("cat") != "cuda_sync"
        and (event.get("cat") not in _WORK or event["args"].get("correlation") in launched)
    ]
    left = trace["traceEvents"]
    on_cpu = 0
    for event in left:
        if event.get("cat") not in _WORK:
            on_cpu += event.get("args", {}).pop("stream", None) is not None
    with gzip.open(to, "wt", encoding="utf-8", compresslevel=1) as file:
        json.dump(trace, file)
    return Removed(len(events) - len(left) - syncs, syncs, on_cpu)


def differences(own: Mapping[str, float], peer: Mapping[str, float]) -> dict[str, float]:
    """Return the difference of each time, in % of the time from the first to the last work.

    The last one is the difference of the overlap, which is a share in % already.
    """
    found = {name: 100 * (own[name] - peer[name]) / own["span"] for name in TIMES}
    if not math.isnan(peer["overlap_percent"]):  # there is no collective
        found["overlap"] = own["overlap_percent"] - peer["overlap_percent"]
    return found


def main(python: str, paths: list[str]) -> None:
    """Print the figures of both for each trace."""
    for path in map(Path, paths):
        print(path.name)
        try:
            is_alike = _compared(python, path)
            if not is_alike:
                with tempfile.TemporaryDirectory() as folder:
                    copy = Path(folder, f"common-{path.name}")
                    write_common(path, copy)
                    print(f"{path.name}, without the events that only one counts")
                    _compared(python, copy)
        except (RuntimeError, TehoError) as error:
            print(f"  {error}")


def _compared(python: str, path: Path) -> bool:
    """Print the figures of both; return whether the times differ by at most 1 %."""
    peer, own = of_hta(python, path), of_teho(path)
    found = differences(own, peer)
    for name in TIMES:
        print(f"  {name:8} {own[name]:14.1f} {peer[name]:14.1f} µs {found[name]:+8.3f} %")
    print(f"  overlap  {own['overlap_percent']:14.2f} {peer['overlap_percent']:14.2f} %")
    print(f"  time     {own['s']:14.2f} {peer['s']:14.2f} s")
    print(f"  memory   {own['memory_mb']:14.0f} {peer['memory_mb']:14.0f} MB")
    return max(map(abs, found.values())) <= 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
