"""Classify the junctions of a trail network by terrain with a graph convolution."""
import numpy as np
import torch
from torch import nn

JUNCTIONS, TRAILS, READINGS, TERRAINS = 6000, 21_000, 96, 6
EPOCHS = 120


def network():
    """Junctions in the plane, trails between near ones, readings that follow the terrain."""
    rng = np.random.default_rng(14)
    place = rng.random((JUNCTIONS, 2))
    terrain = ((place[:, 0] * 3).astype(int) * 2 + (place[:, 1] * 2).astype(int)) % TERRAINS
    cell = (place * 40).astype(int)
    groups = {}
    for i, (a, b) in enumerate(cell):
        groups.setdefault((a, b), []).append(i)
    pairs = set()
    while len(pairs) < TRAILS:
        i = int(rng.integers(0, JUNCTIONS))
        a, b = cell[i] + rng.integers(-1, 2, 2)
        near = groups.get((int(a), int(b)))
        if near:
            j = near[int(rng.integers(0, len(near)))]
            if i != j:
                pairs.add((min(i, j), max(i, j)))
    x = rng.normal(0, 1, (JUNCTIONS, READINGS))
    x[:, :TERRAINS] += 0.7 * np.eye(TERRAINS)[terrain]
    edges = torch.tensor(sorted(pairs)).T
    return torch.tensor(x, dtype=torch.float32), torch.tensor(terrain), edges


def propagation(edges):
    """The symmetric normalised adjacency with self loops."""
    near = torch.eye(JUNCTIONS)
    near[edges[0], edges[1]] = 1.0
    near[edges[1], edges[0]] = 1.0
    scale = near.sum(1).rsqrt()
    return scale[:, None] * near * scale[None, :]


class TrailNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Linear(READINGS, width)
        self.second = nn.Linear(width, width)
        self.out = nn.Linear(width, TERRAINS)

    def forward(self, x, spread):
        hidden = torch.relu(spread @ self.first(x))
        hidden = torch.relu(spread @ self.second(hidden))
        return spread @ self.out(hidden)


def main():
    torch.manual_seed(21)
    x, terrain, edges = network()
    spread = propagation(edges)
    order = torch.randperm(JUNCTIONS)
    known, hidden = order[:600], order[600:]
    net = TrailNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for epoch in range(EPOCHS):
        logits = net(x, spread)
        loss = nn.functional.cross_entropy(logits[known], terrain[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 40 == 39:
            right = (logits[hidden].argmax(1) == terrain[hidden]).float().mean().item()
            print(f"epoch {epoch}: loss {loss.item():.3f}, other junctions {right:.2f}")
    degree = torch.bincount(edges.flatten(), minlength=JUNCTIONS)
    print(f"{JUNCTIONS} junctions, {edges.shape[1]} trails, at most {int(degree.max())} at one")


if __name__ == "__main__":
    main()
