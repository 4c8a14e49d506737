"""This section shows which steps `teho profile` records, and what this costs.

*Loops with the very steps*: each loop marks its own steps, and the trace must have the marks of
exactly the steps that `--steps` names. The loops are in `benchmarks/profile_loops.py`: PyTorch,
Lightning, Transformers, several optimizers, accumulated gradients, evaluation between the steps.
*Slower outside of the window*: a program that waits for its window, and the same program without a
plan, in turns; times are CPU times. *A step in the window* is divided by a step before the window.
The large trace repeats a real step of a transformer on an H200, with Python stacks. The other tool,
Holistic Trace Analysis (HTA), reads the same files. HTA leaves out work of the GPU whose launch is
not in the trace. HTA also counts `cuda_sync` events, and operators with an argument `stream`, as
work. So the two tools can differ. If a figure differs by more than 1 %, the next row compares the
two tools on a copy of the trace without these events and arguments. The environment variable
`TEHO_HTA_TRACES` names a folder with the traces of HTA's tests.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import profile_steps
from common import CACHE, ROOT, Figures, Row, environment, measure_process, say
from traces import differences, of_hta, of_teho, write_common

from teho.errors import TehoError

_TRACES = ROOT / "tests" / "data" / "traces"
_LARGE = _TRACES / "lm-stacks.json.gz"
_BYTES, _QUICK_BYTES = 500_000_000, 5_000_000
_ID_STEP = 10_000_000
"""Added to each number that joins two events, for each repetition; larger than any in the file."""
_SUMS = ("idle", "compute", "other", "kernels", "overlap")
_MOST_DIFFERENCE = 1
_READINGS = 3


def measure(*, quick: bool) -> list[Row]:
    """Measure; without PyTorch in `.frameworks`, only the summaries."""
    python = ROOT / ".frameworks" / "bin" / "python"
    rows = _recorded(str(python), quick=quick) if python.exists() else []
    return rows + _large(quick=quick) + ([] if quick else _sums())


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
    for model in profile_steps.MODELS[-1:] if quick else profile_steps.MODELS:
        say(model)
        found = profile_steps.slowdown(python, model)
        outside = found["outside of the window, %"]
        again = found["the same without a plan, again, %"]
        rows += [
            Row(what=f"{model}: slower outside of the window", unit="%",
                ours=Figures.of(outside), ours_text=f"{outside:+.2f}", budget=0.5,
                peer="without a plan, again", theirs=Figures.of(again), theirs_text=f"{again:+.2f}",
                verdict="too noisy to tell" if abs(again) > 0.5 else ""),
            Row(what=f"{model}: a step in the window", unit="times a step",
                ours=Figures.of(found["a step in the window, times"]), budget=2),
            Row(what=f"{model}: trace of 5 steps, gzip", unit="MB",
                ours=Figures.of(found["trace of 5 steps, gzip, MB"]), budget=50),
        ]  # fmt: skip
    return rows


def _loops(python: str) -> list[str]:
    listing = f"import sys; sys.path.insert(0, {str(profile_steps.HERE)!r}); "
    listing += "import profile_loops; print(*profile_loops.NAMES)"
    done = subprocess.run([python, "-c", listing], capture_output=True, text=True, check=True)
    return done.stdout.split()


def _large(*, quick: bool) -> list[Row]:
    size = _QUICK_BYTES if quick else _BYTES
    path = CACHE / f"trace-{size}.json"
    if not path.exists():
        say("writing the large trace")
        CACHE.mkdir(mode=0o700, exist_ok=True)
        _repeat(json.loads(gzip.decompress(_LARGE.read_bytes())), size, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as folder:
        env = environment(Path(folder))
        argv = [sys.executable, "-m", "teho", "profile", "--short", path]
        ended = [measure_process(argv, env) for _ in range(1 if quick else _READINGS)]
    peer = None if quick else _of_hta(path)
    name = "HTA" if peer else ""
    named = f"summary of a trace of {size / 1e6:.0f} MB"
    return [
        Row(what=f"{named}, wall time", unit="s", budget=10,
            ours=Figures.of(*(one.wall_s for one in ended)), peer=name,
            theirs=Figures.of(peer["s"]) if peer else None),
        Row(what=f"{named}, peak memory", unit="MB", budget=500,
            ours=Figures.of(*(one.peak_bytes / 1e6 for one in ended)), peer=name,
            theirs=Figures.of(peer["memory_mb"]) if peer else None),
    ]  # fmt: skip


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


def _of_hta(path: Path) -> dict[str, float] | None:
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
            row = _difference(path, path.name)
            if row is None:
                continue
            rows.append(row)
            if row.ours.median > _MOST_DIFFERENCE:
                copy = Path(folder, path.name)
                write_common(path, copy)
                row = _difference(copy, f"{path.name}, events that both count")
                rows += [row] if row else []
    return rows


def _difference(path: Path, name: str) -> Row | None:
    """Return a row with the largest difference of a sum; None if one of the two has no sums."""
    peer = _of_hta(path)
    if peer is None:
        return None
    try:
        found = differences(of_teho(path), peer)
    except (RuntimeError, TehoError) as error:
        say(f"{path.name}: {error}")
        return None
    largest = max(_SUMS, key=lambda one: abs(found.get(one, 0)))
    return Row(what=f"`{name}`: largest difference to HTA ({largest})", unit="% of the time",
               ours=Figures.of(abs(found[largest])), budget=_MOST_DIFFERENCE)  # fmt: skip
