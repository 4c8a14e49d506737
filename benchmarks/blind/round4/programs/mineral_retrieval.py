"""Metric learning on Raman spectra of minerals: train an embedding, check recall in the archive."""
import gc
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

MINERALS = 120
CHANNELS = 128
BATCH = 512
EPOCHS = 5


@dataclass
class Scan:
    mineral: int
    spectrum: np.ndarray
    site: str
    remarks: list = field(default_factory=list)


def measure(count, seed):
    rng = np.random.default_rng(seed)
    pure = np.random.default_rng(2).gamma(0.4, 1.0, (MINERALS, CHANNELS))
    label = rng.integers(0, MINERALS, count)
    spectra = pure[label] * rng.uniform(0.6, 1.4, (count, 1)) + 0.7 * rng.standard_normal((count, CHANNELS))
    spectra = spectra.astype(np.float32)
    return [Scan(int(m), s, f"site {k % 37}", [f"run {k}"]) for k, (m, s) in enumerate(zip(label, spectra))]


class Embedder(nn.Module):
    def __init__(self, hidden=1024, size=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CHANNELS, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, size),
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def contrastive(z, labels, heat=0.1):
    sims = z @ z.T / heat
    eye = torch.eye(len(z), dtype=torch.bool)
    sims = sims.masked_fill(eye, -1e9)
    positive = (labels[:, None] == labels[None, :]) & ~eye
    log_p = sims - sims.logsumexp(dim=1, keepdim=True)
    count = positive.sum(1)
    return -((log_p * positive).sum(1)[count > 0] / count[count > 0]).mean()


def stack(scans):
    return torch.from_numpy(np.stack([s.spectrum for s in scans])), torch.tensor([s.mineral for s in scans])


@torch.no_grad()
def recall(model, queries, archive, k=5):
    qx, qy = stack(queries)
    ax, ay = stack(archive)
    sims = model(qx) @ model(ax).T
    ranked = torch.argsort(sims, dim=1, descending=True)[:, :k]
    hits = ay[ranked] == qy[:, None]
    return hits[:, 0].float().mean().item(), hits.any(1).float().mean().item()


def main():
    torch.manual_seed(14)
    train, archive, queries = measure(10_240, 1), measure(8_000, 3), measure(4_000, 4)
    model = Embedder()
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    rng = np.random.default_rng(6)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(train))
        losses = []
        for start in range(0, len(order), BATCH):
            x, y = stack([train[i] for i in order[start:start + BATCH]])
            loss = contrastive(model(x + 0.2 * torch.randn_like(x)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
            del x, y, loss
            gc.collect()
        first, five = recall(model, queries, archive)
        print(f"epoch {epoch}: loss {np.mean(losses):.2f}, recall@1 {first:.2f}, recall@5 {five:.2f}", flush=True)


if __name__ == "__main__":
    main()
