"""`teho.feed` on a GPU, compared with PyTorch's DataLoader and with slicing written by hand.

The data are images of 32 × 32 pixels in memory: 50,000, or 20,000 if each image is changed. An
epoch fetches all batches and computes nothing with them. Each batch ends in the GPU's memory.
"""

from __future__ import annotations

import json
import sys
from statistics import median

from result import Row

from stage import PROGRAMS, Rows, Stage

_ROUNDS = 5
_CASES = {"plain": "images, unchanged", "changed": "images, cropped, mirrored and normalised"}


def measure(stage: Stage) -> None:
    """Do a piece for each kind of data."""
    for case, title in _CASES.items():
        stage.piece(title, lambda case=case: _case(stage, case), least_s=20)


def _case(stage: Stage, case: str) -> Rows:
    rounds = 1 if stage.is_rehearsal else _ROUNDS
    # This Python has Teho and the frameworks.
    argv = [sys.executable, PROGRAMS / "feeding.py", case, str(rounds)]
    told = json.loads(stage.run(argv).splitlines()[-1])
    seconds = {name: median(found) for name, found in told["seconds"].items()}
    dataloader = min(seconds, key=lambda name: (not name.startswith("DataLoader"), seconds[name]))
    for name, found in told["seconds"].items():
        right = "each sample came once" if told["is_right"][name] else "SAMPLES WERE LOST OR MIXED"
        why = f"from {1e3 * min(found):.3g} to {1e3 * max(found):.3g} ms; {right}"
        yield Row(f"{name}, an epoch", "ms", teho=round(1e3 * seconds[name], 2), why=why)
    for other in dict.fromkeys((dataloader, "hand-written")):
        if other in seconds:
            what = f"resident, times as fast as {other}"
            yield Row(what, teho=round(seconds[other] / seconds["resident"], 2))
