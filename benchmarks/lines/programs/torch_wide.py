"""Large matrix products on all cores (the main thread computes along with the others), a gradient
written in Python that backward() calls, and a Python schedule; one round takes about 25 ms."""

import json
import random
import sys
from time import perf_counter as clock

import torch

KIND = {"matmul": "native", "softmax": "native", "backward": "mixed", "schedule": "python"}


class RowClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> torch.Tensor:
        limits = [1.0 / (1 + i % 7) for i in range(len(grad))]
        total = sum(limits[i % len(limits)] * 1e-9 for i in range(50_000))
        return grad * (1.0 - total)


def schedule(steps: int) -> float:
    rate = 1.0
    for i in range(steps):
        rate = rate * 0.999 if i % 10 else rate + 0.001
    return rate


def main(seconds: float) -> None:
    torch.manual_seed(19)
    rng = random.Random(19)
    a = torch.randn(900, 900)
    w = torch.randn(900, 900, requires_grad=True)
    (a @ w).sum().backward()
    multiplied = softened = back = scheduled = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        rows = rng.randrange(700, 900)
        t0 = clock()
        out = a[:rows] @ w  #: matmul
        t1 = clock()
        loss = torch.softmax(RowClip.apply(out), dim=1).std()  #: softmax
        t2 = clock()
        loss.backward()  #: backward
        t3 = clock()
        schedule(rows * 300)  #: schedule
        t4 = clock()
        multiplied, softened = multiplied + t1 - t0, softened + t2 - t1
        back, scheduled = back + t3 - t2, scheduled + t4 - t3
    stretches = {"matmul": multiplied, "softmax": softened, "backward": back, "schedule": scheduled}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
