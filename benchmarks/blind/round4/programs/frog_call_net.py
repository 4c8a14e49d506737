"""Recognise frog species from one-second calls: room echo augmentation, log-mel, small CNN."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

RATE = 16_000
FFT, HOP, MELS = 512, 160, 80
SPECIES = 6
EPOCHS = 5


def record_calls(count, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE) / RATE
    calls, species = np.empty((count, RATE), np.float32), rng.integers(0, SPECIES, count)
    for i, s in enumerate(species):
        pitch = 600 + 450 * s + rng.normal(0, 40)
        pulses = 0.5 + 0.5 * np.sign(np.sin(2 * np.pi * (6 + 3 * s) * t + rng.uniform(0, 6)))
        calls[i] = pulses * np.sin(2 * np.pi * pitch * t) + 0.4 * rng.standard_normal(RATE)
    return calls, species


def pond_echoes(count=12, length=4000):
    rng = np.random.default_rng(90)
    decay = np.exp(-np.arange(length) / 800.0)
    echoes = 0.08 * rng.standard_normal((count, length)) * decay
    echoes[:, 0] = 1.0
    return echoes.astype(np.float32)


def mel_bank():
    def to_mel(f):
        return 2595 * np.log10(1 + f / 700)

    edges = 700 * (10 ** (np.linspace(to_mel(50), to_mel(RATE / 2), MELS + 2) / 2595) - 1)
    bins = np.fft.rfftfreq(FFT, 1 / RATE)
    bank = np.zeros((MELS, len(bins)), np.float32)
    for m in range(MELS):
        left, centre, right = edges[m:m + 3]
        rising = (bins - left) / (centre - left)
        falling = (right - bins) / (right - centre)
        bank[m] = np.maximum(0, np.minimum(rising, falling))
        bank[m] /= max(bank[m].sum(), 1e-6)
    return bank


def log_mel(wave):
    frames = np.lib.stride_tricks.sliding_window_view(wave, FFT)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(FFT).astype(np.float32), axis=1)) ** 2
    return np.log(power @ mel_bank().T + 1e-4).astype(np.float32)


class FrogCalls(Dataset):
    def __init__(self, count, seed, echo):
        self.calls, self.species = record_calls(count, seed)
        self.echoes = pond_echoes() if echo else None

    def __len__(self):
        return len(self.calls)

    def __getitem__(self, i):
        wave = self.calls[i]
        if self.echoes is not None:
            wave = np.convolve(wave, self.echoes[i % len(self.echoes)])[:RATE]
        return torch.from_numpy(log_mel(wave))[None], int(self.species[i])


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.c3 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1), nn.Conv2d(32, 48, 3, padding=1)
        self.head = nn.Linear(48, SPECIES)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.head(F.relu(self.c3(x)).mean(dim=(2, 3)))


def main():
    torch.manual_seed(27)
    train = DataLoader(FrogCalls(480, 1, echo=True), batch_size=32, shuffle=True)
    test = DataLoader(FrogCalls(120, 2, echo=False), batch_size=40)
    net = CallNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for x, y in train:
            loss = F.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train):.2f}", flush=True)
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
    print(f"test accuracy {right / 120:.2f}")


if __name__ == "__main__":
    main()
