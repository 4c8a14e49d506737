"""The training loop of a small network on one thread. Unequal on purpose: reading the loss with
item() is far below 1 % of the time on a CPU."""

import json
import random
import sys
from time import perf_counter as clock

import torch
from torch import nn

KIND = {"batch": "mixed", "forward": "mixed", "backward": "native", "step": "mixed"}
KIND["item"] = "python"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.Tanh())
        self.head = nn.Linear(128, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.head(self.body(x)), y)


def main(seconds: float) -> None:
    torch.manual_seed(16)
    torch.set_num_threads(1)
    rng = random.Random(16)
    inputs, targets = torch.randn(4000, 32), torch.randint(0, 5, (4000,))
    net = Net()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    used = [0.0] * 5
    start = clock()
    warm = False
    while not warm or clock() - start < seconds:
        size = rng.randrange(120, 480)
        t0 = clock()
        chosen = torch.tensor([rng.randrange(4000) for _ in range(size)])  #: batch
        t1 = clock()
        loss = net(inputs[chosen], targets[chosen])  #: forward
        t2 = clock()
        loss.backward()  #: backward
        t3 = clock()
        adam.step()  #: step
        t4 = clock()
        loss.item()  #: item
        t5 = clock()
        adam.zero_grad()
        ends = (t0, t1, t2, t3, t4, t5)
        used = [total + ends[i + 1] - ends[i] for i, total in enumerate(used)]
        if not warm:
            warm, used, start = True, [0.0] * 5, clock()
    print(json.dumps({"loop_s": clock() - start, "stretches": dict(zip(KIND, used))}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
