"""Graph network with Laplacian positions: predict the stiffness of branched polymers."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

POLYMERS = 256
EPOCHS = 10
POSITIONS = 8
MAX_UNITS = 144


def grow_polymer(rng):
    units = int(rng.integers(80, MAX_UNITS + 1))
    adj = np.zeros((units, units))
    for u in range(1, units):
        parent = u - 1 if rng.random() < 0.75 else int(rng.integers(0, u))
        adj[u, parent] = adj[parent, u] = 1
    for _ in range(units // 12):
        a, b = rng.integers(0, units, 2)
        if a != b:
            adj[a, b] = adj[b, a] = 1
    kinds = rng.integers(0, 5, units)
    stiffness = 0.3 * np.linalg.norm(adj.sum(0) - 2) + (kinds == 3).mean() * 8 + 0.05 * rng.standard_normal()
    return {"adj": adj, "kinds": kinds, "stiffness": stiffness}


def laplacian_positions(adj):
    degree = adj.sum(1)
    scale = 1 / np.sqrt(np.maximum(degree, 1))
    laplacian = np.eye(len(adj)) - scale[:, None] * adj * scale[None, :]
    _, vectors = np.linalg.eigh(laplacian)
    return np.abs(vectors[:, 1:POSITIONS + 1])


class Polymers:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.graphs = [grow_polymer(rng) for _ in range(POLYMERS)]

    def batches(self, order, size=16):
        for start in range(0, len(order), size):
            picked = [self.graphs[i] for i in order[start:start + size]]
            nodes = torch.zeros(len(picked), MAX_UNITS, 5 + POSITIONS)
            adj = torch.zeros(len(picked), MAX_UNITS, MAX_UNITS)
            mask = torch.zeros(len(picked), MAX_UNITS, 1)
            for row, g in enumerate(picked):
                n = len(g["kinds"])
                nodes[row, torch.arange(n), torch.from_numpy(g["kinds"])] = 1
                nodes[row, :n, 5:] = torch.from_numpy(laplacian_positions(g["adj"])).float()
                adj[row, :n, :n] = torch.from_numpy(g["adj"])
                mask[row, :n] = 1
            target = torch.tensor([g["stiffness"] for g in picked], dtype=torch.float32)
            yield nodes, adj / adj.sum(-1, keepdim=True).clamp(min=1), mask, target


class StiffnessNet(nn.Module):
    def __init__(self, width=128, depth=5):
        super().__init__()
        self.enter = nn.Linear(5 + POSITIONS, width)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.near = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))
        self.read = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, nodes, adj, mask):
        h = self.enter(nodes) * mask
        for own, near in zip(self.own, self.near):
            h = h + F.relu(own(h) + near(adj @ h)) * mask
        pooled = torch.cat([h.sum(1) / mask.sum(1), h.amax(1)], dim=-1)
        return self.read(pooled).squeeze(-1)


def main():
    torch.manual_seed(8)
    data = Polymers(70)
    rng = np.random.default_rng(71)
    train_ids, test_ids = np.arange(224), np.arange(224, POLYMERS)
    net = StiffnessNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        losses = []
        for nodes, adj, mask, target in data.batches(rng.permutation(train_ids)):
            loss = F.mse_loss(net(nodes, adj, mask), target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {np.mean(losses):.2f}", flush=True)
    with torch.no_grad():
        gaps = [(net(n, a, m) - t).abs() for n, a, m, t in data.batches(test_ids)]
    print(f"test error {torch.cat(gaps).mean().item():.2f}")


if __name__ == "__main__":
    main()
