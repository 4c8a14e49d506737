"""Training with PyTorch; after each epoch a forked child computes the quality on all cores."""
import os
import time

import torch
from torch import nn

DIM, BATCH, STEPS = 256, 128, 250


def quality(model, x, y):
    """Return the error of a large batch, which PyTorch computes with OpenMP threads."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x), y).item()
        os.write(write_end, str(error).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return float(answer)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = nn.Sequential(nn.Linear(DIM, 1024), nn.ReLU(), nn.Linear(1024, 1))
    opt = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = torch.randn(4096, DIM), torch.randn(4096, 1)
    for epoch in range(10):
        for step in range(STEPS):
            time.sleep(0.1)  # the next batch of a simulation
            at = step % (4096 // BATCH) * BATCH
            opt.zero_grad()
            loss = nn.functional.mse_loss(model(x[at : at + BATCH]), y[at : at + BATCH])
            loss.backward()
            opt.step()
        print(f"epoch {epoch}: error {quality(model, x, y):.4f}", flush=True)


if __name__ == "__main__":
    main()
