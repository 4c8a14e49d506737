"""Graph network over ribosome surface points that finds sites of stalled translation."""
import numpy as np
import torch
from sklearn.metrics import silhouette_score
from torch import nn

POINTS, FEATURES, NEIGHBOURS = 4000, 16, 12
EPOCHS, DIM = 40, 64


def surface(seed):
    rng = np.random.default_rng(seed)
    pos = rng.normal(size=(POINTS, 3))
    pos /= np.linalg.norm(pos, axis=1, keepdims=True)
    pos *= 1.0 + 0.15 * np.sin(5 * pos[:, :1]) * np.cos(4 * pos[:, 1:2])
    pocket = np.zeros(POINTS)
    for centre in pos[rng.integers(0, POINTS, 9)]:
        pocket += np.exp(-((pos - centre) ** 2).sum(1) / 0.05)
    y = (pocket > np.quantile(pocket, 0.75)).astype(np.int64)
    x = rng.normal(size=(POINTS, FEATURES))
    x[:, 0] += 1.2 * y
    x[:, 1] -= 0.8 * y
    return (torch.from_numpy(pos.astype(np.float32)), torch.from_numpy(x.astype(np.float32)),
            torch.from_numpy(y))


def neighbour_index(pos):
    gaps = torch.cdist(pos, pos)
    return gaps.topk(NEIGHBOURS + 1, dim=1, largest=False).indices[:, 1:]


class EdgeConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.own = nn.Linear(cin, cout)
        self.other = nn.Linear(cin, cout)

    def forward(self, h, index):
        message = self.other(h)[index].mean(1)
        return torch.relu(self.own(h) + message)


class StallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = EdgeConv(FEATURES, DIM)
        self.second = EdgeConv(DIM, DIM)
        self.out = nn.Linear(DIM, 2)

    def forward(self, pos, x):
        index = neighbour_index(pos)
        z = self.second(self.first(x, index), index)
        return self.out(z), z


def main():
    torch.manual_seed(27)
    pos, x, y = surface(27)
    train = torch.arange(POINTS) % 5 != 0
    model = StallNet()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    separation = []
    for epoch in range(EPOCHS):
        logits, z = model(pos, x)
        loss = nn.functional.cross_entropy(logits[train], y[train])
        opt.zero_grad()
        loss.backward()
        opt.step()
        separation.append(silhouette_score(z.detach().numpy(), y.numpy()))
    hit = (logits.argmax(1) == y)[~train].float().mean().item()
    print(f"points {POINTS}, stalled {y.float().mean().item():.3f}")
    print(f"last loss {loss.item():.4f}, held-out accuracy {hit:.4f}")
    print(f"silhouette of the embedding {separation[-1]:.4f}")


if __name__ == "__main__":
    main()
