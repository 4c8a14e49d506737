"""Regress the age of sea urchins from radial density profiles of their spines."""
import multiprocessing

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PROFILES, LENGTH, EPOCHS = 1800, 512, 5


class SpineProfiles(Dataset):
    """Each item is a growth-ring profile, jittered and smoothed anew at every visit."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.age = rng.uniform(2.0, 14.0, n).astype(np.float32)
        self.phase = rng.uniform(0, 2 * np.pi, n)
        self.kernel = np.exp(-0.5 * (np.arange(-40, 41) / 6.0) ** 2)
        self.kernel /= self.kernel.sum()

    def __len__(self):
        return len(self.age)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        r = np.linspace(0, 1, LENGTH)
        warp = r + 0.01 * np.cumsum(rng.normal(0, 0.03, LENGTH))
        profile = np.sin(2 * np.pi * self.age[i] * warp + self.phase[i])
        for _ in range(6):
            profile = profile + rng.normal(0, 0.2, LENGTH)
            profile = np.convolve(profile, self.kernel, mode="same")
        profile = (profile - profile.mean()) / (profile.std() + 1e-6)
        return torch.from_numpy(profile.astype(np.float32)), torch.tensor(self.age[i])


class AgeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(16, 32, 9, stride=2, padding=4), nn.ReLU(),
            nn.Conv1d(32, 32, 9, stride=2, padding=4), nn.ReLU(),
            nn.AdaptiveAvgPool1d(8), nn.Flatten())
        self.head = nn.Linear(32 * 8, 1)

    def forward(self, x):
        return self.head(self.features(x.unsqueeze(1))).squeeze(1)


def main():
    torch.manual_seed(0)
    context = multiprocessing.get_context("spawn")
    loader = DataLoader(SpineProfiles(PROFILES, 1), batch_size=60, shuffle=True,
                        num_workers=2, multiprocessing_context=context)
    model = AgeNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for profile, age in loader:
            loss = nn.functional.smooth_l1_loss(model(profile), age)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(age)
        print(f"epoch {epoch}: loss {total / PROFILES:.4f}")


if __name__ == "__main__":
    main()
