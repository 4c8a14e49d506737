"""Tell five species of cricket apart by one second of their song."""
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE, SECONDS = 16_000, 1.0
WINDOW, HOP, BANDS = 512, 160, 40
CLIPS, SPECIES, EPOCHS = 560, 5, 9


def sing(kind, rng):
    time = np.arange(int(RATE * SECONDS)) / RATE
    carrier = 2800 + 700 * kind + rng.normal(0, 60)
    chirps = 0.5 + 0.5 * np.sign(np.sin(2 * np.pi * (8 + 5 * kind) * time + rng.random() * 6))
    song = chirps * np.sin(2 * np.pi * carrier * time)
    return (song + rng.normal(0, 0.8, len(time))).astype(np.float32)


def mel(frequency):
    return 2595 * math.log10(1 + frequency / 700)


def hertz(value):
    return 700 * (10 ** (value / 2595) - 1)


def triangles():
    """Mel filters, one row per band."""
    low, high = mel(80), mel(RATE / 2)
    edges = [hertz(low + (high - low) * k / (BANDS + 1)) for k in range(BANDS + 2)]
    filters = np.zeros((BANDS, WINDOW // 2 + 1), dtype=np.float32)
    for band in range(BANDS):
        left, centre, right = edges[band:band + 3]
        for line in range(WINDOW // 2 + 1):
            frequency = line * RATE / WINDOW
            rising = (frequency - left) / (centre - left)
            falling = (right - frequency) / (right - centre)
            filters[band, line] = max(0.0, min(rising, falling))
    return torch.from_numpy(filters)


def picture(sound):
    """Logarithmic mel spectrogram, centred."""
    spectrum = torch.stft(sound, WINDOW, HOP, window=torch.hann_window(WINDOW),
                          return_complex=True).abs() ** 2
    bands = torch.log(triangles() @ spectrum + 1e-4)
    return (bands - bands.mean()) / bands.std()


class Songs(Dataset):
    def __init__(self, first, last, train):
        rng = np.random.default_rng(first)
        self.labels = rng.integers(0, SPECIES, last - first)
        self.sounds = [torch.from_numpy(sing(kind, rng)) for kind in self.labels]
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        sound = self.sounds[i]
        if self.train:
            sound = torch.roll(sound, int(torch.randint(0, len(sound), (1,))))
        return picture(sound)[None], int(self.labels[i])


def build():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Conv2d(32, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d((4, 2)), nn.Flatten(),
        nn.Linear(256, SPECIES))


def main():
    torch.manual_seed(30)
    train = DataLoader(Songs(0, CLIPS, True), batch_size=32, shuffle=True)
    test = DataLoader(Songs(CLIPS, CLIPS + 100, False), batch_size=50)
    net = build()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for image, kind in train:
            loss = nn.functional.cross_entropy(net(image), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train):.3f}")
    with torch.no_grad():
        right = sum(int((net(image).argmax(1) == kind).sum()) for image, kind in test)
    print(f"species named rightly: {right} of 100")


if __name__ == "__main__":
    main()
