"""Training with a replay buffer of many Python objects; a rare clean-up collects garbage for 30 s."""
import gc
import random
import time

import torch
from torch import nn


class Transition:
    __slots__ = ("state", "reward")

    def __init__(self, state):
        self.state, self.reward = state, state[0] * 0.1
        self.state.append(self)  # a cycle: only the collector can free it


def fill(n, rng):
    return [Transition([rng.random(), rng.random()]) for _ in range(n)]


def clean_up(buffer, seconds):
    """Drop old transitions and collect, again and again, as one call."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        buffer[:1000] = fill(1000, random.Random(len(buffer)))
        gc.collect()


def train(model, opt, buffer, steps, rng):
    for step in range(1, steps + 1):
        batch = rng.sample(buffer, 32)
        x = torch.tensor([t.state[:2] for t in batch])
        y = torch.tensor([[t.reward] for t in batch])
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.035)
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.6f}", flush=True)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    gc.disable()
    rng = random.Random(0)
    buffer = fill(300_000, rng)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    train(model, opt, buffer, 900, rng)
    clean_up(buffer, 30)
    train(model, opt, buffer, 900, rng)
    print("done")


if __name__ == "__main__":
    main()
