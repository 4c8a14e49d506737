"""Predict missing lines in a power grid with a graph convolutional encoder."""
import numpy as np
import torch
from torch import nn

STATIONS = 3000
LINES = 7000
WIDTH = 96
EPOCHS = 36
NEGATIVES = 1500


def grid(rng):
    place = rng.random((STATIONS, 2))
    order = np.argsort(place[:, 0])
    lines = []
    while len(lines) < LINES:
        a = int(rng.integers(0, STATIONS - 40))
        near = order[a + 1:a + 40]
        gap = np.abs(place[near] - place[order[a]]).sum(1)
        b = int(near[rng.choice(np.argsort(gap)[:6])])
        lines.append((min(int(order[a]), b), max(int(order[a]), b)))
    lines = list(dict.fromkeys(lines))
    features = np.concatenate([place, np.sin(8 * place), np.cos(8 * place)], axis=1)
    return torch.from_numpy(features.astype(np.float32)), lines


def adjacency(lines):
    a = torch.tensor(lines)
    loops = torch.arange(STATIONS)
    rows = torch.cat([a[:, 0], a[:, 1], loops])
    cols = torch.cat([a[:, 1], a[:, 0], loops])
    degree = torch.bincount(rows, minlength=STATIONS).float()
    value = 1.0 / (degree[rows] * degree[cols]).sqrt()
    return torch.sparse_coo_tensor(torch.stack([rows, cols]), value, (STATIONS, STATIONS)).coalesce()


class Encoder(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(inputs, WIDTH), nn.Linear(WIDTH, WIDTH),
                                     nn.Linear(WIDTH, WIDTH)])
        self.pair = nn.Sequential(nn.Linear(2 * WIDTH, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, adj, x, pairs):
        for layer in self.layers:
            x = torch.relu(torch.sparse.mm(adj, layer(x)))
        u, v = x[pairs[:, 0]], x[pairs[:, 1]]
        return self.pair(torch.cat([u * v, (u - v).abs()], dim=1))[:, 0]


def absent_lines(known, rng, count):
    pairs = []
    while len(pairs) < count:
        u, v = sorted(rng.integers(0, STATIONS, size=2).tolist())
        if u != v and (u, v) not in known:
            pairs.append((u, v))
    return pairs


def main():
    rng = np.random.default_rng(83)
    torch.manual_seed(83)
    x, lines = grid(rng)
    adj = adjacency(lines)
    real = torch.tensor(lines)
    known = lines
    net = Encoder(x.shape[1])
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for epoch in range(EPOCHS):
        absent = torch.tensor(absent_lines(known, rng, NEGATIVES))
        total = 0.0
        for part in range(5):
            some = real[torch.randperm(len(real))[:1500]]
            pairs = torch.cat([some, absent])
            label = torch.cat([torch.ones(len(some)), torch.zeros(len(absent))])
            loss = nn.functional.binary_cross_entropy_with_logits(net(adj, x, pairs), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        if epoch % 9 == 8:
            print(f"epoch {epoch + 1} loss {total / 5:.4f}")
    with torch.no_grad():
        held = torch.tensor(absent_lines(known, rng, 500))
        score = net(adj, x, torch.cat([real[:500], held]))
    print(f"right {((score[:500] > 0).sum() + (score[500:] < 0).sum()).item() / 1000:.3f}")


if __name__ == "__main__":
    main()
