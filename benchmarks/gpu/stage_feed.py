"""`teho.feed` on a GPU: what it gives, and its speed compared with other feeds.

The data are images of 32 × 32 pixels in memory: 50,000, or 20,000 if each image is changed. An
epoch fetches all batches. Only in one piece, the GPU also computes. Each batch ends in the GPU's
memory.
"""

from __future__ import annotations

import json
import sys
from statistics import median

from result import Row
from stage_compare import tuned

from stage import PROGRAMS, Rows, Stage

_ROUNDS = 5
_CASES = {
    "plain": "images, unchanged",
    "changed": "images, cropped, mirrored and normalised",
    "computing": "images, while the GPU computes 0.4 ms for each batch",
}
_PAIRS = (
    ("resident", "hand-written"),
    ("resident, from host memory", "hand-written, pinned memory"),
)
"""Our feed, and the feed that a user would write by hand for the same memory."""


def measure(stage: Stage) -> None:
    """Check what the feeds give; then measure each kind of data."""
    stage.piece("what `resident` gives", lambda: _checks(stage), least_s=20)
    for case, title in _CASES.items():
        stage.piece(title, lambda case=case: _case(stage, case), least_s=20)
    stage.piece("the example cnn", lambda: _example(stage), least_s=60)
    stage.piece("tune --allow feed", lambda: _tune(stage), least_s=100)


def _checks(stage: Stage) -> Rows:
    found = json.loads(stage.run([sys.executable, PROGRAMS / "feed_checks.py"]).splitlines()[-1])
    for check in found:
        wrong = check["error"]
        yield Row(check["name"], teho="WRONG" if wrong else "right", why=wrong or check["found"])
    if wrong := [check["name"] for check in found if check["error"]]:
        raise RuntimeError(f"wrong: {', '.join(wrong)}")


def _case(stage: Stage, case: str) -> Rows:
    rounds = 1 if stage.is_rehearsal else _ROUNDS
    # This Python has Teho and the frameworks.
    argv = [sys.executable, PROGRAMS / "feeding.py", case, str(rounds)]
    told = json.loads(stage.run(argv).splitlines()[-1])
    seconds = {name: median(found) for name, found in told["seconds"].items()}
    loaders = [name for name in seconds if name.startswith("DataLoader")]
    for name, found in told["seconds"].items():
        right = "each sample came once" if told["is_right"][name] else "SAMPLES WERE LOST OR MIXED"
        why = f"from {1e3 * min(found):.3g} to {1e3 * max(found):.3g} ms; {right}"
        yield Row(f"{name}, an epoch", "ms", teho=round(1e3 * seconds[name], 2), why=why)
    fastest = sorted(loaders, key=seconds.__getitem__)[:1]
    for ours, other in (*(("resident", loader) for loader in fastest), *_PAIRS):
        if other in seconds:
            what = f"{ours}, times as fast as {other}"
            yield Row(what, teho=round(seconds[other] / seconds[ours], 2))
    if wrong := [name for name, is_right in told["is_right"].items() if not is_right]:
        raise RuntimeError(f"wrong: {', '.join(wrong)}")


def _example(stage: Stage) -> Rows:
    """Yield the time of an epoch of `teho bench cnn` with each feed."""
    for_s = stage.seconds(max(10.0, min(100.0, stage.left_s - 40)), 25.0)
    # This Python has Teho: so the feeds of `teho.feed` are measured, too.
    words = ["--python", sys.executable, "--library", "torch", "--for", f"{for_s:.0f}s"]
    words += ["--on", "cpu:1", "--quick"] if stage.is_rehearsal else [
        "--on", "gpu:1", "--batch", "512", "--workers", "4", "--prefetch", "2"]  # fmt: skip
    output = stage.teho(
        "bench", "cnn", *words, "--format", "json", limit_s=for_s + 60, codes=(0, 1)
    )
    (measured,) = json.loads(output)["results"]
    for timing in measured["timings"]:
        yield Row(
            f"{timing['phase']}, an epoch", "ms", teho=round(1e3 * timing["median_s"], 2),
            why=f"from {1e3 * timing['low_s']:.4g} to {1e3 * timing['high_s']:.4g} ms; "
            f"{json.dumps(timing['point'])}",
        )  # fmt: skip
    phases = {timing["phase"] for timing in measured["timings"]}
    if not any("teho.feed" in phase for phase in phases):
        raise RuntimeError(f"no phase of teho.feed: {'; '.join(measured['notes'])}")


def _tune(stage: Stage) -> Rows:
    """Yield what `teho tune --allow feed` proves for a training with arrays in memory."""
    argv = [sys.executable, PROGRAMS / "train_arrays.py", "600"]
    yield from tuned(stage, argv, ["--allow", "feed"], 180.0)
