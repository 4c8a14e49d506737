"""A training on a GPU that stops and continues what watches it, and counts its steps meanwhile.

python paced.py WINDOWS LENGTH_S DOSE    under `teho run`

As in benchmarks/slowdown.py: every other window the watchers are *stopped*, and of those between a
half, drawn by chance, are *awake* and the others stopped *again*; each is compared with the windows
around it. Prints what was lost in each window, in per cent and divided by DOSE, as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from torch import nn

HAS_GPU = torch.cuda.is_available()


def watchers() -> list[int]:
    """Return the pids of the recorder, and of its sampler of stacks if there is one."""
    home = Path(os.environ["TEHO_HOME"])
    until_s = time.monotonic() + 20
    found: list[int] = []
    while not found and time.monotonic() < until_s:
        for path in home.glob("runs/*/nodes/*.json"):
            found = [int(json.loads(path.read_bytes())["recorder_pid"])]
        time.sleep(0.05)
    reader = Path(os.environ.get("TEHO_PROBE", "/nowhere")) / "reader"
    if reader.exists():
        found.append(int(reader.read_text(encoding="ascii")))
    return found


def main(count: int, window_s: float, dose: float) -> None:
    device = torch.device("cuda" if HAS_GPU else "cpu")
    rows, width = (1024, 2048) if HAS_GPU else (16, 64)
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(4))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    vectors = torch.randn(rows, width, device=device)

    def rate() -> float:
        """Return steps a second in one window; each is done when it is counted."""
        steps, began_s = 0, time.perf_counter()
        while (elapsed_s := time.perf_counter() - began_s) < window_s:
            optimizer.zero_grad()
            model(vectors).square().mean().backward()
            optimizer.step()
            if HAS_GPU:
                torch.cuda.synchronize()
            steps += 1
        return steps / elapsed_s

    rate()
    pids = watchers()
    between = ["awake", "again"] * (count // 2)
    random.Random(1).shuffle(between)
    states = ["stopped", *itertools.chain(*((one, "stopped") for one in between))]
    rates = []
    try:
        for state in states:
            for pid in pids:
                os.kill(pid, signal.SIGCONT if state == "awake" else signal.SIGSTOP)
            rates.append(rate())
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    lost: dict[str, list[float]] = {"awake": [], "again": []}
    for place in range(1, len(states), 2):
        around = (rates[place - 1] + rates[place + 1]) / 2
        lost[states[place]].append(100 * (around / rates[place] - 1) / dose)
    print(json.dumps({**lost, "steps_per_s": sum(rates) / len(rates), "watchers": len(pids)}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]))
