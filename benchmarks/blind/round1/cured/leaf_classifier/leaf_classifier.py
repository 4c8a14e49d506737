"""Small CNN on leaf scans (synthetic stand-ins until the scanner is back)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    def __init__(self, n=640, size=32):
        g = torch.Generator().manual_seed(3)
        self.x = torch.rand(n, 3, size, size, generator=g)
        self.y = (self.x.mean((1, 2, 3)) * 1000).long() % 5

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        img = self.x[i]
        if i % 2:
            img = img.flip(-1)
        return img, self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 32, 3, padding=1)
        self.b = nn.Conv2d(32, 32, 3, padding=1)
        self.out = nn.Linear(32 * 64, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.a(x)), 2)
        x = F.max_pool2d(F.relu(self.b(x)), 2)
        return self.out(x.flatten(1))


def main():
    torch.manual_seed(0)
    loader = DataLoader(Leaves(), batch_size=64, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn", persistent_workers=True)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    for epoch in range(6):
        total = 0.0
        for x, y in loader:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch:2d}  loss {total / len(loader):.4f}", flush=True)


if __name__ == "__main__":
    main()
