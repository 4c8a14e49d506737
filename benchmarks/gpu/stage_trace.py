"""`teho profile` on a GPU: the trace of the very steps, its sums, and what the window costs.

The sums of a trace are computed once more here, in the simplest way, from the trace's JSON.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from pathlib import Path
from typing import Any

import profile_steps
from result import Row

from stage import LackingError, Rows, Stage

_STEPS, _REHEARSED = (20, 25), (2, 5)
_ON_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


def measure(stage: Stage) -> None:
    """Do the pieces."""
    for name in ("resnet", "tiny"):
        stage.piece(f"five steps of {name}", lambda name=name: _steps(stage, name), least_s=20)
    stage.piece("JAX, one second", lambda: _jax(stage), least_s=25)
    for model in ("convolutions", "small"):
        what = f"slowdown by the profiler, {model}"
        stage.piece(what, lambda model=model: _slowdown(stage, model), least_s=25)


def _steps(stage: Stage, name: str) -> Rows:
    first, end = _REHEARSED if stage.is_rehearsal else _STEPS
    argv = stage.program("train_model", name, stage.seconds(4.0, 3.0))
    trace = _traced(stage, name, ["--steps", f"{first}:{end}"], argv)
    yield Row("size of the trace, gzip", "MB", teho=round(trace.stat().st_size / 1e6, 2))
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    numbers = {
        int(found[1])
        for event in events
        if (found := re.fullmatch(r"ProfilerStep#(\d+)", event.get("name", "")))
    }
    yield Row(
        "steps in the trace", teho=f"{min(numbers)} to {max(numbers)}",
        other=f"{first} to {end - 1}", whose="requested",
    )  # fmt: skip
    began_s = time.monotonic()
    told = json.loads(stage.teho("profile", trace, "--format", "json"))
    yield Row("time to explain the trace", "s", teho=round(time.monotonic() - began_s, 2))
    yield Row("verdict", teho=told["verdict"])
    yield from _sums(told["traces"][0], [one for one in events if one.get("cat") in _ON_DEVICE])


def _sums(told: dict[str, Any], events: list[dict[str, Any]]) -> Rows:
    """Yield Teho's sums over kernels beside our own."""
    kernels = [one for one in events if one["cat"] == "kernel"]
    own = {one["name"]: 0.0 for one in kernels}
    for one in kernels:
        own[one["name"]] += one["dur"] / 1e6
    theirs = {one["name"]: one["total_s"] for one in told["kernels"]}
    yield Row("names of kernels", teho=len(theirs), other=len(own), whose="the trace's JSON")
    for name in sorted(own, key=lambda name: -own[name])[:3]:
        yield Row(
            f"kernel {name[:60]}", "ms",
            teho=round(1e3 * theirs[name], 4) if name in theirs else None,
            other=round(1e3 * own[name], 4), whose="the trace's JSON",
            why="" if name in theirs else "Teho's summary has no kernel of this name",
        )  # fmt: skip


def _jax(stage: Stage) -> Rows:
    argv = stage.program("train_jax", stage.seconds(6.0, 3.0))
    after, window = ("3s", "1s") if not stage.is_rehearsal else ("1s", "500ms")
    trace = _traced(stage, "jax", ["--window", window, "--after", after], argv)
    yield Row("size of the trace", "MB", teho=round(trace.stat().st_size / 1e6, 2))
    told = json.loads(stage.teho("profile", trace, "--format", "json"))
    yield Row("verdict", teho=told["verdict"])
    for kernel in told["traces"][0]["kernels"][:3]:
        yield Row(f"kernel {kernel['name'][:60]}", "ms", teho=round(1e3 * kernel["total_s"], 3))


def _traced(stage: Stage, name: str, words: list[str], argv: list[str]) -> Path:
    """Run a program under `teho profile`, keep its trace, and return the file."""
    home = stage.work / f"home-{name}"
    stage.teho("profile", *words, "--", *argv, env={"TEHO_HOME": str(home)})
    traces = sorted(path for path in home.glob("runs/*/traces/*") if path.is_file())
    if not traces:
        raise LackingError(f"`teho profile` left no trace: {stage.last_errors}")
    stage.keep(traces[0], f"{name}-{traces[0].name}")
    return traces[0]


def _slowdown(stage: Stage, model: str) -> Rows:
    for what, value in profile_steps.slowdown(stage.python, model).items():
        yield Row(what, teho=round(value, 4))
