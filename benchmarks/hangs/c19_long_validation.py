"""Training with a validation after each 200 steps; a validation takes 15 times as long as all
training steps before it."""
import time

import torch
from torch import nn

FACTOR, ROUNDS = 15, 2


def train_steps(model, opt, n, gen):
    t = time.monotonic()
    for _ in range(n):
        x = torch.randn(16, 40, generator=gen)
        loss = nn.functional.cross_entropy(model(x), x[:, :6].argmax(1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        time.sleep(0.01)
    return time.monotonic() - t, loss.item()


@torch.no_grad()
def validate(model, seconds):
    """Bootstrap of the accuracy on the validation set."""
    gen = torch.Generator().manual_seed(7)
    x = torch.randn(2000, 40, generator=gen)
    y = x[:, :6].argmax(1)
    accuracies = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pick = torch.randint(0, 2000, (500,), generator=gen)
        accuracies.append((model(x[pick]).argmax(1) == y[pick]).float().mean().item())
    a = torch.tensor(accuracies)
    return a.mean().item(), a.std().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(40, 128), nn.ReLU(), nn.Linear(128, 6))
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    gen = torch.Generator().manual_seed(1)
    spent = 0.0
    for r in range(1, ROUNDS + 1):
        seconds, loss = train_steps(model, opt, 200, gen)
        spent += seconds
        print(f"step {200 * r} loss {loss:.4f}", flush=True)
        mean, std = validate(model, min(FACTOR * spent, 80.0))
        print(f"validation accuracy {mean:.3f} +- {std:.3f}", flush=True)
    train_steps(model, opt, 200, gen)
    print("done")


if __name__ == "__main__":
    main()
