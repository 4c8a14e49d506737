"""Value network for chess positions written in short notation."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PIECES = "PNBRQKpnbrqk"
WORTH = dict(zip(PIECES, [1, 3, 3, 5, 9, 0, -1, -3, -3, -5, -9, 0]))
POSITIONS = 3000
EPOCHS = 5


def scatter(rng):
    texts, values = [], []
    for _ in range(POSITIONS):
        squares = rng.permutation(64)[:int(rng.integers(8, 28))]
        pieces = rng.choice(list(PIECES), size=len(squares))
        texts.append(" ".join(f"{p}{s}" for p, s in zip(pieces, squares)))
        values.append(np.tanh(0.1 * sum(WORTH[p] for p in pieces)))
    return texts, values


class Positions(Dataset):
    def __init__(self, texts, values):
        self.texts = texts
        self.values = values

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, i):
        planes = np.zeros((12, 8, 8), np.float32)
        for item in self.texts[i].split():
            square = int(item[1:])
            planes[PIECES.index(item[0]), square // 8, square % 8] = 1.0
        return torch.from_numpy(planes), np.float32(self.values[i])


def network():
    layers = [nn.Conv2d(12, 48, 3, padding=1), nn.ReLU()]
    for _ in range(4):
        layers += [nn.Conv2d(48, 48, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(48 * 64, 96), nn.ReLU(), nn.Linear(96, 1))


def main():
    torch.manual_seed(50)
    texts, values = scatter(np.random.default_rng(50))
    loader = DataLoader(
        Positions(texts, values),
        batch_size=50,
        shuffle=True,
        num_workers=2,
        multiprocessing_context="spawn",
    )
    net = network()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for planes, value in loader:
            guess = torch.tanh(net(planes))[:, 0]
            loss = nn.functional.mse_loss(guess, value)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(value)
        print(f"epoch {epoch} error {total / POSITIONS:.4f}", flush=True)


if __name__ == "__main__":
    main()
