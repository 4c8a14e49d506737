"""This section shows which steps `teho profile` records, and what this costs.

*Loops with the very steps*: each loop marks its own steps, and the trace must have the marks of
exactly the steps that `--steps` names, each as often as the loop makes it. The loops are in
`benchmarks/profile_loops.py`: PyTorch, Lightning, Transformers, several optimizers, accumulated
gradients, evaluation between the steps. One of the loops has no optimizer, and calls `teho.step()`.
Without this call, Teho cannot count the steps of such a loop, and says so: the next row.
*Slower before the window*: a step that waits for its window, and a step without a plan, in turns.
*Slower after the window*: the steps after each of six windows, compared with the steps before the
first window, and the same blocks of steps without a window. Times are CPU times, and without a GPU
each is divided by the time of a fixed loop beside it, because the speed of a core of a virtual
machine changes.
*A step in the window* is divided by a step before the window. *Stop and write* is the time that
the program waits for once, after the window. *Trace of 5 steps* is the file in the recording; the
model with many kernels has 48 layers.
The large traces repeat a real step of a transformer on an H200, with Python stacks. The other tool,
Holistic Trace Analysis (HTA), reads the same files. The difference to HTA is the largest one of the
times idle, computing, other work, and of all kernels, of the overlap, and of the time of each
kernel, which `teho profile --format json` prints. HTA leaves out work of the GPU whose launch is
not in the trace. HTA also counts `cuda_sync` events, and operators with an argument `stream`, as
work. So the two tools can differ. If a figure differs by more than 1 %, the row says how many such
events the trace has, and the next row compares the two tools on a copy of the trace without these
events and arguments. The environment variable `TEHO_HTA_TRACES` names a folder with the traces of
HTA's tests.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import profile_steps
from common import CACHE, ROOT, Figures, Row, digits, environment, measure_process, say
from traces import (
    Removed,
    differences,
    kernels_of_teho,
    largest_by_name,
    of_hta,
    of_teho,
    write_common,
)

from teho.errors import TehoError

_TRACES = ROOT / "tests" / "data" / "traces"
_LARGE = _TRACES / "lm-stacks.json.gz"
_BYTES, _GIGANTIC_BYTES, _QUICK_BYTES = 500_000_000, 2_000_000_000, 5_000_000
_ID_STEP = 10_000_000
"""Added to each number that joins two events, for each repetition; larger than any in the file."""
_SUMS = ("idle", "compute", "other", "kernels", "overlap", "by name")
_WORDS = {"idle": "idle", "compute": "computing", "kernels": "all kernels"}
"""Times that the rows show of both tools."""
_MOST_DIFFERENCE = 1
_MOST_SLOWDOWN = 0.5
_READINGS = 3


def measure(*, quick: bool) -> list[Row]:
    """Measure; without PyTorch in `.frameworks`, only the summaries."""
    python = ROOT / ".frameworks" / "bin" / "python"
    rows = _recorded(str(python), quick=quick) if python.exists() else []
    if quick:
        return rows + _large(_QUICK_BYTES, readings=1)
    return rows + _large(_BYTES) + _large(_GIGANTIC_BYTES, readings=1, is_goal=False) + _sums()


def _recorded(python: str, *, quick: bool) -> list[Row]:
    names = ["plain"] if quick else _loops(python)
    wrong = {name: why for name in names if (why := profile_steps.very_steps(python, name))}
    for name, why in wrong.items():
        say(f"{name}: {why}")
    right = len(names) - len(wrong)
    rows = [
        Row(what="loops with the very steps in the trace", unit="loops", ours=Figures.of(right),
            ours_text=f"{right} of {len(names)}", verdict="**no**" if wrong else "yes"),
    ]  # fmt: skip
    words = profile_steps.words_without_steps(python)
    says_so = "Teho counted no steps of the program" in words and "`--window 2s`" in words
    if not says_so:
        say(words)
    rows.append(
        Row(what="a loop without an optimizer and `teho.step()`", unit="loops",
            ours=Figures.of(says_so),
            ours_text="Teho says that it counted no steps, and names `--window`",
            verdict="yes" if says_so else "**no**")
    )  # fmt: skip
    for model in profile_steps.MODELS[-1:] if quick else profile_steps.MODELS:
        say(model)
        found = profile_steps.slowdown(python, model)
        before, again = (
            found["outside of the window, %"],
            found["the same without a plan, again, %"],
        )
        after, control = found["after the window, %"], found["the same without a window, %"]
        least, most = found["after the fastest window, %"], found["after the slowest window, %"]
        rows += [
            Row(what=f"{model}: slower before the window", unit="%", ours=Figures.of(before),
                ours_text=f"{before:+.2f}", budget=_MOST_SLOWDOWN,
                peer="without a plan, again", theirs=Figures.of(again), theirs_text=f"{again:+.2f}",
                verdict=_noisy(again)),
            Row(what=f"{model}: slower after the window", unit="%", ours=Figures.of(after),
                ours_text=f"{after:+.2f} ({least:+.2f} to {most:+.2f})", budget=_MOST_SLOWDOWN,
                peer="without a window", theirs=Figures.of(control), theirs_text=f"{control:+.2f}",
                verdict=_noisy(control)),
            Row(what=f"{model}: a step in the window", unit="times a step",
                ours=Figures.of(found["a step in the window, times"]), budget=2),
            Row(what=f"{model}: stop and write, once", unit="ms",
                ours=Figures.of(found["stop and write, ms"])),
        ]  # fmt: skip
    for model in (profile_steps.MODELS[-1:] if quick
                  else (*profile_steps.MODELS, profile_steps.MANY_KERNELS)):  # fmt: skip
        size = Figures.of(profile_steps.recorded_mb(python, model))
        rows.append(Row(what=f"{model}: trace of 5 steps", unit="MB", ours=size, budget=50))
    return rows


def _noisy(control: float) -> str:
    """Return a verdict if a difference without a cause is larger than the budget."""
    return "too noisy to tell" if abs(control) > _MOST_SLOWDOWN else ""


def _loops(python: str) -> list[str]:
    listing = f"import sys; sys.path.insert(0, {str(profile_steps.HERE)!r}); "
    listing += "import profile_loops; print(*profile_loops.NAMES)"
    done = subprocess.run([python, "-c", listing], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _large(size: int, *, readings: int = _READINGS, is_goal: bool = True) -> list[Row]:
    path = CACHE / f"trace-{size}.json"
    if not path.exists():
        say("writing the large trace")
        CACHE.mkdir(mode=0o700, exist_ok=True)
        _repeat(json.loads(gzip.decompress(_LARGE.read_bytes())), size, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as folder:
        env = environment(Path(folder))
        argv = [sys.executable, "-m", "teho", "profile", "--short", path]
        ended = [measure_process(argv, env) for _ in range(readings)]
    peer = _of_hta(path) if size == _BYTES else None
    named = f"summary of a trace of {size / 1e6:.0f} MB"
    return [
        Row(what=f"{named}, wall time", unit="s", budget=10 if is_goal else None,
            ours=Figures.of(*(one.wall_s for one in ended)), **_beside(size, peer, "s")),
        Row(what=f"{named}, peak memory", unit="MB", budget=500 if is_goal else None,
            ours=Figures.of(*(one.peak_bytes / 1e6 for one in ended)),
            **_beside(size, peer, "memory_mb")),
    ]  # fmt: skip


def _beside(size: int, peer: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """Return the fields of a row with HTA's figure, or that HTA failed."""
    if size != _BYTES or not os.environ.get("PEERS_PYTHON"):
        return {}
    if peer is None:
        return {"peer": "HTA", "theirs": Figures.of(0), "theirs_text": "failed"}
    return {"peer": "HTA", "theirs": Figures.of(peer[name])}


def _repeat(trace: dict[str, Any], size: int, path: Path) -> None:
    """Write the events again and again, each time later, until the file has this size."""
    events = trace.pop("traceEvents")
    first = min(one["ts"] for one in events)
    period = max(one["ts"] + one.get("dur", 0) for one in events) - first + 1
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(trace)[:-1] + ', "traceEvents": [')
        number, comma = 0, ""
        while file.tell() < size:
            for one in events:
                file.write(comma + json.dumps(_later(one, number, number * period)))
                comma = ",\n"
            number += 1
        file.write("]}")


def _later(event: Mapping[str, Any], number: int, after: float) -> dict[str, Any]:
    changed = {**event, "ts": event["ts"] + after}
    if "id" in changed:
        changed["id"] += number * _ID_STEP
    if event["name"].startswith("ProfilerStep#"):
        changed["name"] = f"ProfilerStep#{number}"
    joined = ("correlation", "External id", "Ev Idx")
    arguments = event.get("args", {})
    later = {key: arguments[key] + number * _ID_STEP for key in joined if key in arguments}
    return {**changed, "args": {**arguments, **later}} if later else changed


def _of_hta(path: Path) -> dict[str, Any] | None:
    """Return HTA's figures; None if `PEERS_PYTHON` names no Python that has it, or if it fails."""
    python = os.environ.get("PEERS_PYTHON", "")
    if not python:
        return None
    try:
        return of_hta(python, path)
    except RuntimeError as error:
        say(str(error))
        return None


def _sums() -> list[Row]:
    """Compare sums of times with HTA's, on real traces of GPUs: ours, and those of HTA's tests."""
    if not os.environ.get("PEERS_PYTHON"):
        return []
    paths = sorted(_TRACES.glob("*.json.gz"))
    if given := os.environ.get("TEHO_HTA_TRACES"):
        paths += sorted(Path(given).glob("*.json.gz"))
    rows, seen = [], set()
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as folder:
        for path in paths:
            content = path.read_bytes()
            if content in seen or path.stem.startswith("conv-cpu"):
                continue
            seen.add(content)
            copy = Path(folder, path.name)
            row = _difference(path, path.name)
            if row.ours.median > _MOST_DIFFERENCE:
                removed = write_common(path, copy)
                rows.append(replace(row, verdict=_counted_otherwise(removed)))
                row = _difference(copy, f"{path.name}, events that both count")
            rows.append(row)
    return rows


def _counted_otherwise(removed: Removed) -> str:
    """Return why the figures of a trace differ, for the column *Budget kept*."""
    return (
        f"**no**: {removed.without_launch} works without a launch, {removed.syncs} `cuda_sync`, "
        f"{removed.on_cpu} operators with `stream`"
    )


def _difference(path: Path, name: str) -> Row:
    """Return a row with the largest difference of a sum, or which tool could not read the trace."""
    peer = _of_hta(path)
    own: dict[str, float] | None
    why = "read"
    try:
        own, kernels = of_teho(path), kernels_of_teho(path)
    except (RuntimeError, TehoError) as error:
        own, kernels, why = None, {}, str(error).removeprefix(f"{path.name} ")
    if own is None or peer is None:
        return Row(
            what=f"`{name}`", unit="", ours=Figures.of(0), ours_text=why,
            peer="HTA", theirs=Figures.of(0),
            theirs_text="cannot read it" if peer is None else "read", verdict="not compared",
        )  # fmt: skip
    found = differences(own, peer)
    found["by name"] = largest_by_name(kernels, peer["by_name"], own["span"])
    largest = max(_SUMS, key=lambda one: abs(found.get(one, 0)))
    difference = abs(found[largest])
    return Row(
        what=f"`{name}`: largest difference to HTA ({largest})", unit="% of the time",
        ours=Figures.of(difference), ours_text=f"{digits(difference)} ({_times(own)})",
        peer="HTA", theirs=Figures.of(0), theirs_text=_times(peer), budget=_MOST_DIFFERENCE,
    )  # fmt: skip


def _times(figures: Mapping[str, Any]) -> str:
    times = [f"{words} {figures[key] / 1e3:.3f} ms" for key, words in _WORDS.items()]
    overlap = figures["overlap_percent"]
    return ", ".join([*times, *([] if math.isnan(overlap) else [f"overlap {overlap:.1f} %"])])
