"""Full-batch optimisation where every single step takes 30 s, from the first one on."""
import time

import torch
from torch import nn

STEPS, STEP_SECONDS = 5, 30.0


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(100, 300), nn.Tanh(), nn.Linear(300, 300), nn.Tanh(), nn.Linear(300, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    gen = torch.Generator().manual_seed(1)
    for step in range(STEPS):
        t = time.monotonic()
        opt.zero_grad()
        total, chunks = 0.0, 0
        while time.monotonic() - t < STEP_SECONDS:  # accumulate gradients over the chunks
            x = torch.randn(256, 100, generator=gen)
            loss = nn.functional.mse_loss(model(x), x[:, :3].sum(1, keepdim=True))
            loss.backward()
            total += loss.item()
            chunks += 1
        for p in model.parameters():
            p.grad /= chunks
        opt.step()
        print(f"step {step} loss {total / chunks:.5f} ({chunks} chunks, {time.monotonic() - t:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
