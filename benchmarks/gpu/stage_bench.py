"""`teho bench` on CPU and GPU: verdicts, break-even sizes, and shares of the peak speed.

The JSON output of `teho bench` is kept: `teho bench --from FILE --plot` draws its plots again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from result import Row

from stage import LackingError, Rows, Stage

EXAMPLES = {
    "matmul": 130.0, "cnn": 130.0, "solve": 100.0, "regression": 90.0, "resnet152": 90.0,
    "add": 20.0, "loop": 20.0, "sum": 20.0,
}  # fmt: skip
"""The examples in their order, and the longest time of each [s].

On an H200, 45 s were too short: the start of a library takes 5 to 9 s in each placement.
"""
_LEAST_S = 5.0
SIZES = {
    "cnn": ["--batch", "256,1024,4096", "--workers", "4,0,8", "--prefetch", "2"],
    # An epoch on a CPU takes minutes.
    "resnet152": ["--batch", "512", "--workers", "8,0", "--prefetch", "2", "--on", "gpu:1"],
}
"""Fewer sizes and settings than without options, because the time is short."""


def measure(stage: Stage) -> None:
    """Do a piece for each example. An example begins only if 70 % of its time is left."""
    for name, seconds in EXAMPLES.items():
        least_s = max(35.0, 0.7 * seconds)
        stage.piece(name, lambda name=name: _example(stage, name), least_s=least_s)


def _example(stage: Stage, name: str) -> Rows:
    # An example takes longer than its limit: each library has to start, and the last point to end.
    for_s = stage.seconds(max(_LEAST_S, min(EXAMPLES[name], stage.left_s - 30)), 12.0)
    places = "cpu:1" if stage.is_rehearsal else "cpu:1,cpu:all,gpu:1"
    words = ["--on", places, "--python", stage.python, "--for", f"{for_s:.0f}s", "--format", "json"]
    words += ["--quick", "--library", "torch"] if stage.is_rehearsal else SIZES.get(name, [])
    limit_s = stage.seconds(for_s + 60, 60.0)
    output = stage.teho("bench", name, *words, limit_s=limit_s, codes=(0, 1))
    told = json.loads(output)
    file = stage.work / f"{name}.json"
    file.write_text(output, encoding="utf-8")
    stage.keep(file, f"{name}.json")
    (measured,) = told["results"]
    yield Row("verdict", teho=measured["verdict"])
    yield from _best(measured)
    yield from _crossovers(measured)
    for pay_off in measured["pay_offs"]:
        yield Row(
            f"{pay_off['group']}: made up for its start", "runs", teho=round(pay_off["runs"], 1),
            why=f"{pay_off['library']}, {pay_off['phase']}, against {pay_off['against']}",
        )  # fmt: skip
    for note in [*told["notes"], *measured["notes"]]:
        if stage.python not in note:  # the path of the frameworks is not a measurement
            yield Row("note", why=note)
    if not measured["timings"]:
        raise LackingError("`teho bench` measured no time: see the notes")


def _best(measured: Mapping[str, Any]) -> Rows:
    """Yield the highest rate of each placement, library and precision, and its share."""
    best: dict[tuple[str, ...], dict[str, Any]] = {}
    for timing in measured["timings"]:
        if timing["flop_per_s"] is None:
            continue
        precision = str(timing["point"].get("precision", ""))
        key = (timing["placement"], timing["library"], precision)
        if key not in best or timing["flop_per_s"] > best[key]["flop_per_s"]:
            best[key] = timing
    for key, timing in best.items():
        share = timing["peak_percent"]
        limited = timing["power_throttle_percent"]
        whys = [f"point {json.dumps(timing['point'])}"]
        whys += [] if share is not None else ["Teho does not know the peak speed of this device"]
        whys += [f"slowed by the power limit in {limited:.0f} % of the samples"] if limited else []
        yield Row(
            f"highest rate, {' '.join(key).strip()}", "TFLOP/s",
            teho=round(timing["flop_per_s"] / 1e12, 3), why="; ".join(whys),
        )  # fmt: skip
        if share is not None:
            what = f"share of the peak speed, {' '.join(key).strip()}"
            yield Row(what, "%", teho=round(share, 1))


def _crossovers(measured: Mapping[str, Any]) -> Rows:
    for one in measured["crossovers"]:
        what = f"{one['phase']} {one['group']}: {one['fast']} faster than {one['slow']}".strip()
        words = {"always": "at every size", "never": "at no size"}.get(one["outcome"])
        at = words or f"from size {one['high']:g} on"
        why = f"{one['times']:.3g} times as fast at size {one['last']:g}; "
        why += ", ".join(one["libraries"])
        yield Row(f"{what}, by {measured['axis']}", teho=at, why=why)
