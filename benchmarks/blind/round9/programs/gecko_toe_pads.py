"""Species of geckos from toe pad photographs; one worker prepares the pictures."""
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

PADS, SIDE, SPECIES, EPOCHS = 640, 96, 5, 3


class ToePads(Dataset):
    def __init__(self):
        rng = np.random.default_rng(58)
        yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
        self.species = rng.integers(0, SPECIES, PADS)
        self.photos = []
        for kind in self.species:
            folds = np.sin(2 * np.pi * (4 + 2 * kind) * (yy + 0.1 * np.sin(3 * xx + rng.uniform(0, 6))))
            grey = 128 + 70 * folds + rng.normal(0, 25, (SIDE, SIDE))
            self.photos.append(Image.fromarray(grey.clip(0, 255).astype(np.uint8)))

    def __len__(self):
        return PADS

    def __getitem__(self, index):
        angle = float(torch.empty(1).uniform_(-20, 20))
        photo = self.photos[index].rotate(angle, Image.BILINEAR)
        if torch.rand(1) < 0.5:
            photo = photo.transpose(Image.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(photo, np.float32)).unsqueeze(0) / 255 - 0.5, self.species[index]


def main():
    torch.manual_seed(58)
    loader = DataLoader(ToePads(), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
    net = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 96, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(96, 96, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, SPECIES),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        losses, hits = [], 0
        for photos, species in loader:
            scores = net(photos)
            loss = nn.functional.cross_entropy(scores, species)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            hits += int((scores.argmax(1) == species).sum())
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, accuracy {hits / PADS:.3f}")


if __name__ == "__main__":
    main()
