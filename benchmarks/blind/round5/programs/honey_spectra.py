"""Tell the origin of honey from its spectrum (Accelerate); the spectra come as JSON lines."""
import json
import os

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

WORK = os.path.join(os.environ.get("TMPDIR", "."), "honey_spectra")
POINTS, SAMPLES, ORIGINS = 1400, 2600, 6
EPOCHS = 44


def measure(path):
    rng = np.random.default_rng(37)
    axis = np.linspace(0, 1, POINTS)
    lines = rng.random((ORIGINS, 5))
    with open(path, "w") as out:
        for number in range(SAMPLES):
            origin = int(rng.integers(0, ORIGINS))
            curve = 0.2 + 0.3 * rng.random() * axis
            for centre in lines[origin]:
                curve = curve + 0.3 * rng.random() * np.exp(-((axis - centre) / 0.02) ** 2)
            curve = curve + rng.normal(0, 0.05, POINTS)
            out.write(json.dumps({"jar": number, "origin": origin,
                                  "spectrum": [round(v, 4) for v in curve.tolist()]}) + "\n")


class Jars(Dataset):
    def __init__(self, path, keep):
        self.jars = []
        with open(path) as lines:
            for line in lines:
                jar = json.loads(line)
                if keep(jar["jar"]):
                    self.jars.append((jar["spectrum"], jar["origin"]))

    def __len__(self):
        return len(self.jars)

    def __getitem__(self, i):
        return self.jars[i]


def collate(jars):
    spectra = torch.tensor([spectrum for spectrum, _ in jars])
    origins = torch.tensor([origin for _, origin in jars])
    return spectra[:, None] - 0.35, origins


def build():
    return nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=4), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=3), nn.ReLU(),
        nn.Conv1d(32, 32, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool1d(12), nn.Flatten(),
        nn.Linear(384, 64), nn.ReLU(), nn.Linear(64, ORIGINS))


def main():
    os.makedirs(WORK, exist_ok=True)
    path = os.path.join(WORK, "honey.jsonl")
    measure(path)
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(16)
    train = DataLoader(Jars(path, lambda jar: jar % 10), batch_size=64, shuffle=True,
                       collate_fn=collate)
    test = DataLoader(Jars(path, lambda jar: jar % 10 == 0), batch_size=130, collate_fn=collate)
    net = build()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    net, optimizer, train, test = accelerator.prepare(net, optimizer, train, test)
    for epoch in range(EPOCHS):
        total = 0.0
        for spectra, origins in train:
            loss = nn.functional.cross_entropy(net(spectra), origins)
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            total += loss.item()
        if epoch % 11 == 10:
            accelerator.print(f"epoch {epoch}: loss {total / len(train):.3f}")
    with torch.no_grad():
        right = sum(int((net(s).argmax(1) == o).sum()) for s, o in test)
    accelerator.print(f"jars of known origin: {right} of {SAMPLES // 10}")


if __name__ == "__main__":
    main()
