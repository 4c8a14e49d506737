"""Classifier on chest crops; loader workers prepare the next batches meanwhile."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self, n):
        self.x = np.random.default_rng(0).random((n, 64, 64), dtype=np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        img = np.rot90(self.x[i], i % 4).copy()
        img -= img.mean()
        return torch.from_numpy(img)[None], i % 3


def main():
    torch.manual_seed(0)
    torch.set_num_threads(2)
    dl = DataLoader(Crops(1500), batch_size=50, shuffle=True, num_workers=1, persistent_workers=True)
    net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(48 * 256, 3))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    for epoch in range(6):
        for x, y in dl:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
