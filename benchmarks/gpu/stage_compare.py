"""`teho compare`, `teho tune` and `teho scale` with a GPU: verdicts, energy, break-even sizes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from result import Row

from stage import Rows, Stage

_FAULTS = Path(__file__).resolve().parents[1] / "faults" / "programs"
_LARGE = ("--rows", 4096, "--width", 4096, "--tf32")
_SMALL = ("--rows", 100, "--width", 10, "--depth", 1)


def measure(stage: Stage) -> None:
    """Do the pieces."""
    large = _SMALL if stage.is_rehearsal else _LARGE
    stage.piece("compare, large", lambda: _compare(stage, large), least_s=100)
    size, count = (32, 64) if stage.is_rehearsal else (448, 256)
    images = ("--size", size, "--images", count, "--data", stage.work / "images")
    stage.piece("tune, slow decode", lambda: _tune(stage, "train_images", images), least_s=100)
    stage.piece("compare, small", lambda: _compare(stage, _SMALL), least_s=100)
    stage.piece("compare, by width", lambda: _sweep(stage), least_s=130)
    table = ("--rows", 50_000, "--batches", "loader")
    stage.piece("tune, table row by row", lambda: _tune(stage, "train_table", table), least_s=100)
    stage.piece("scale, one GPU", lambda: _scale(stage), least_s=20)


def _places(stage: Stage) -> str:
    return "cpu:1" if stage.is_rehearsal else "cpu:1,cpu:all,gpu:1"


def _compare(stage: Stage, words: Sequence[object], *more: str) -> Rows:
    argv = stage.program("train_vectors", *words, "--seconds", 600)
    told = _told(stage, "compare", 120.0, ["--on", _places(stage), *more], argv)
    yield Row("outcome", teho=told["outcome"], why=told["verdict"])
    for point in told["points"]:
        yield from _point(point)
    for note in told["notes"]:
        yield Row("note", why=note)


def _point(point: Mapping[str, Any]) -> Rows:
    at = "" if point["value"] is None else f"{point['value']:g}: "
    if at:
        yield Row(f"{at}outcome", teho=point["outcome"], why=point["verdict"])
    for variant in point["variants"]:
        name = f"{at}{variant['name']}"
        paces = [one["steps_per_s"] for one in variant["samples"] if one["steps_per_s"]]
        pace = sorted(paces)[len(paces) // 2] if paces else None
        why = variant["why"] or "median of all runs"
        yield Row(f"{name}, step rate", "steps/s", teho=pace, why=why)
        if variant["speed"]:
            speed = variant["speed"]
            why = f"95 % interval: {speed['low']:.3g} to {speed['high']:.3g}"
            yield Row(f"{name}, times as fast", teho=round(speed["times"], 3), why=why)
        for one in variant["samples"][:1]:
            energy = one["energy_j"]
            is_missing = isinstance(energy, dict)
            yield Row(
                f"{name}, power of node and GPUs", "W",
                teho=None if is_missing else round(energy / one["elapsed_s"], 1),
                why=energy["detail"] if is_missing else "in the first run",
            )  # fmt: skip
    for even in point["break_even"]:
        why = f"{even['low']:.4g} to {even['high']:.4g}"
        yield Row(f"{at}break-even", even["unit"], teho=round(even["at"], 3), why=why)


def _sweep(stage: Stage) -> Rows:
    """Yield the width from which the GPU is faster."""
    widths = "16,32" if stage.is_rehearsal else "64,512,4096"
    argv = stage.program("train_vectors", "--width", "{width}", "--rows", 256, "--seconds", 600)
    words = ["--on", _places(stage), "--sweep", f"width={widths}"]
    told = _told(stage, "compare", 150.0, words, argv)
    yield Row("outcome", teho=told["outcome"], why=told["verdict"])
    even = told["break_even"]
    yield Row(
        "break-even", "width", teho=round(even["at"], 3) if even else None,
        why=f"{even['low']:.4g} to {even['high']:.4g}" if even else "no width between these",
    )  # fmt: skip
    for point in told["points"]:
        yield from _point(point)


def _tune(stage: Stage, program: str, words: Sequence[object]) -> Rows:
    """Yield the gain that `teho tune` proves for a training that waits for its data."""
    argv = [stage.python, str(_FAULTS / f"{program}.py"), *map(str, words), "--seconds"]
    if program == "train_images":
        stage.run([*argv, "0"])  # creates the images
    yield from tuned(stage, [*argv, "600"], [], 120.0)


def tuned(stage: Stage, argv: Sequence[object], options: Sequence[str], for_s: float) -> Rows:
    """Yield the gain that `teho tune` proves for a command in this time, and its settings."""
    told = _told(stage, "tune", for_s, options, argv)
    yield Row("outcome", teho=told["outcome"], why=told["verdict"])
    gain = told["gain"]
    if gain:
        why = f"95 % interval: {gain['low']:.3g} to {gain['high']:.3g}; "
        why += f"{gain['pairs']} pairs of runs"
        yield Row("times as fast", teho=round(gain["times"], 3), why=why)
    yield Row("settings", teho=json.dumps(told["settings"]) if told["settings"] else None,
              why="" if told["settings"] else "`teho tune` proved no gain")  # fmt: skip
    for note in told["notes"]:
        yield Row("note", why=note)


def _scale(stage: Stage) -> Rows:
    """Yield what `teho scale` says if there is only one GPU."""
    argv = stage.program("train_vectors", *_SMALL, "--seconds", 600)
    for_s, window = (6, "500ms") if stage.is_rehearsal else (20, "2s")
    words = ["scale", "--for", f"{for_s}s", "--window", window, "--format", "json", "--", *argv]
    output = stage.teho(*words, limit_s=for_s + stage.seconds(40, 10), codes=(0, 1, 2))
    if not output:
        yield Row("verdict", teho="a mistake in the command, exit code 2", why=stage.last_errors)
        return
    told = json.loads(output)
    yield Row("verdict", teho=told["verdict"])
    for note in told["notes"]:
        yield Row("note", why=note)


def _told(
    stage: Stage, command: str, for_s: float, words: Sequence[str], argv: Sequence[object]
) -> dict[str, Any]:
    """Return the JSON of a command. It runs for `for_s`, or for the rest of the stage's time."""
    for_s = stage.seconds(min(for_s, stage.left_s - 10), 6.0)
    window = "2s" if not stage.is_rehearsal else "500ms"
    options = ["--for", f"{for_s:.0f}s", "--window", window, "--format", "json"]
    limit_s = stage.seconds(for_s + 30, 12.0)
    # Exit code 1: the time or the evidence was not enough; the JSON says so too.
    output = stage.teho(
        command, *options, *words, "--", *map(str, argv), limit_s=limit_s, codes=(0, 1)
    )
    told: dict[str, Any] = json.loads(output)
    return told
