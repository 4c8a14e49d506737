"""Simulations on tensors so small that starting each operation costs more than doing it."""

import json
import random
import sys
from time import perf_counter as clock

import torch

KIND = {"rotate": "python", "items": "python", "stack": "mixed", "backward": "native"}


def rotate(state: torch.Tensor, turn: torch.Tensor, steps: int) -> torch.Tensor:
    for _ in range(steps):
        state = turn @ state
        state = state / state.norm()
    return state


def hottest(state: torch.Tensor, rounds: int) -> float:
    best = 0.0
    for _ in range(rounds):
        for i in range(3):
            best = max(best, state[i].item())
    return best


def gather(state: torch.Tensor, count: int) -> torch.Tensor:
    return torch.stack([state + i for i in range(count)]).sum(0)


def main(seconds: float) -> None:
    torch.set_num_threads(1)
    rng = random.Random(18)
    turn = torch.tensor([[0.0, -1.0, 0.1], [1.0, 0.0, 0.2], [0.0, 0.3, 1.0]], requires_grad=True)
    state = torch.ones(3)
    rotate(state, turn, 3).sum().backward()
    rotated = read = stacked = back = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        n = rng.randrange(8, 60)
        t0 = clock()
        state = rotate(state.detach(), turn, n)  #: rotate
        t1 = clock()
        hottest(state, n)  #: items
        t2 = clock()
        loss = gather(state, 2 * n).sum()  #: stack
        t3 = clock()
        loss.backward()  #: backward
        t4 = clock()
        rotated, read = rotated + t1 - t0, read + t2 - t1
        stacked, back = stacked + t3 - t2, back + t4 - t3
    stretches = {"rotate": rotated, "items": read, "stack": stacked, "backward": back}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
