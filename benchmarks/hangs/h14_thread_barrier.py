"""Three replicas in threads which meet at a barrier in every step to average their gradients."""
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

REPLICAS = 3
CLASSES = {f"class_{i}": i for i in range(4)}
models = []


def average():
    for params in zip(*(m.parameters() for m in models)):
        mean = torch.stack([p.grad for p in params]).mean(0)
        for p in params:
            p.grad.copy_(mean)


barrier = threading.Barrier(REPLICAS, action=average)


def read_batch(replica, step, gen):
    x = torch.randn(16, 30, generator=gen)
    names = [f"class_{int(i)}" for i in x[:, :4].argmax(1)]
    if replica == 2 and step == 600:
        names[3] = "Class_1"  # a typing error in the label file
    time.sleep(0.04)
    return x, torch.tensor([CLASSES[n] for n in names])


def run(replica):
    gen = torch.Generator().manual_seed(replica)
    model = models[replica]
    opt = torch.optim.SGD(model.parameters(), lr=0.02)
    for step in range(100_000):
        x, y = read_batch(replica, step, gen)
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        barrier.wait()
        opt.step()
        if replica == 0 and step % 50 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    torch.set_num_threads(1)
    for _ in range(REPLICAS):
        torch.manual_seed(0)
        models.append(nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 4)))
    with ThreadPoolExecutor(REPLICAS) as pool:
        futures = [pool.submit(run, r) for r in range(REPLICAS)]
        for f in futures:
            f.result()


if __name__ == "__main__":
    main()
