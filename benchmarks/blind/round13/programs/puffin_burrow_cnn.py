"""Tell occupied from empty puffin burrows on small thermal images."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 36
EPOCHS = 4


def make_images(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    images = rng.normal(8.0, 1.5, (count, SIDE, SIDE)).astype(np.float32)
    for i in range(count):
        cy, cx = rng.uniform(10, 26, 2)
        blob = np.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 30.0)
        images[i] += (4.0 if labels[i] else 1.5) * blob
    return images, labels


class BurrowImages(Dataset):
    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        mean = self.images.mean(axis=0)
        std = self.images.std(axis=0)
        image = (self.images[index] - mean) / (std + 1e-6)
        return torch.from_numpy(image[None]), int(self.labels[index])


class BurrowNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(128, 2)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def main():
    torch.manual_seed(3)
    torch.set_num_threads(2)
    images, labels = make_images(1200, 5)
    loader = DataLoader(BurrowImages(images, labels), batch_size=40, shuffle=True)
    net = BurrowNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(EPOCHS):
        total, right = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            out = net(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
            right += int((out.argmax(1) == y).sum())
        print(f"epoch {epoch}: loss {total / len(images):.4f} accuracy {right / len(images):.3f}")


if __name__ == "__main__":
    main()
