"""Skip-gram with negative samples for shop baskets (item2vec)."""
import numpy as np
import torch
from torch import nn

ITEMS = 300_000
DIM = 64
PAIRS = 600_000
BATCH = 6000
NEG = 4


def baskets():
    rng = np.random.default_rng(10)
    group = rng.integers(0, 3000, PAIRS)
    left = (group * 100 + rng.integers(0, 100, PAIRS)).astype(np.int64)
    right = (group * 100 + rng.integers(0, 100, PAIRS)).astype(np.int64)
    swap = rng.random(PAIRS) < 0.1
    right[swap] = rng.integers(0, ITEMS, swap.sum())
    return torch.from_numpy(left), torch.from_numpy(right)


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        self.centre = nn.Embedding(ITEMS, DIM)
        self.context = nn.Embedding(ITEMS, DIM)
        nn.init.uniform_(self.centre.weight, -0.3, 0.3)
        nn.init.uniform_(self.context.weight, -0.3, 0.3)

    def forward(self, c, pos, neg):
        v = self.centre(c)
        good = (v * self.context(pos)).sum(-1)
        bad = torch.einsum("bd,bkd->bk", v, self.context(neg))
        return -(nn.functional.logsigmoid(good).sum() + nn.functional.logsigmoid(-bad).sum())


def train(model, left, right):
    opt = torch.optim.SGD(model.parameters(), lr=0.4)
    g = torch.Generator().manual_seed(99)
    order = torch.randperm(PAIRS, generator=g)
    track = []
    for k in range(0, PAIRS, BATCH):
        pick = order[k:k + BATCH]
        noise = torch.randint(0, ITEMS, (len(pick), NEG), generator=g)
        loss = model(left[pick], right[pick], noise)
        opt.zero_grad()
        loss.backward()
        opt.step()
        track.append(loss.item() / len(pick))
    return track


def main():
    torch.manual_seed(4)
    left, right = baskets()
    model = SkipGram()
    losses = train(model, left, right)
    norm = model.centre.weight.norm(dim=1).mean().item()
    print(f"steps {len(losses)} loss start {losses[0]:.4f} end {np.mean(losses[-20:]):.4f} mean norm {norm:.4f}")


if __name__ == "__main__":
    main()
