"""Recommend museum objects to visitors by Bayesian personalised ranking."""
import numpy as np
import torch
from torch import nn

VISITORS, OBJECTS, FACTORS, BATCH, STEPS = 3000, 20000, 48, 128, 420


def visit_log():
    """Visitors keep to a few halls; the objects of a hall are alike."""
    rng = np.random.default_rng(41)
    hall = rng.integers(0, 40, OBJECTS)
    by_hall = [np.flatnonzero(hall == h) for h in range(40)]
    visitor, seen = [], []
    for v in range(VISITORS):
        for h in rng.integers(0, 40, 3):
            for thing in rng.choice(by_hall[h], 10):
                visitor.append(v)
                seen.append(thing)
    return np.array(visitor), np.array(seen)


class Taste(nn.Module):
    def __init__(self):
        super().__init__()
        self.visitor = nn.Embedding(VISITORS, FACTORS)
        self.thing = nn.Embedding(OBJECTS, FACTORS)
        nn.init.normal_(self.visitor.weight, std=0.1)
        nn.init.normal_(self.thing.weight, std=0.1)

    def forward(self, visitor, liked, others):
        v = self.visitor(visitor)
        good = (v * self.thing(liked)).sum(1, keepdim=True)
        bad = (v.unsqueeze(1) * self.thing(others)).sum(2)
        return -nn.functional.logsigmoid(good - bad).mean()


def recall(model, visitors, history):
    found = 0
    with torch.no_grad():
        for v in visitors:
            score = (model.thing.weight @ model.visitor.weight[v]).numpy()
            ranked = sorted(range(OBJECTS), key=lambda i: score[i], reverse=True)[:200]
            found += len(set(ranked) & history[v]) / len(history[v])
    return found / len(visitors)


def main():
    torch.manual_seed(41)
    np.random.seed(41)
    visitor, seen = visit_log()
    history = {}
    for v, thing in zip(visitor.tolist(), seen.tolist()):
        history.setdefault(v, set()).add(thing)
    model = Taste()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(1, STEPS + 1):
        rows = np.random.randint(0, len(seen), BATCH)
        others = np.stack([np.random.choice(OBJECTS, 10, replace=False) for _ in rows])
        loss = model(torch.from_numpy(visitor[rows]), torch.from_numpy(seen[rows]),
                     torch.from_numpy(others))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 105 == 0:
            score = recall(model, range(0, VISITORS, 20), history)
            print(f"step {step}: loss {loss.item():.4f} recall@200 {score:.4f}")


if __name__ == "__main__":
    main()
