"""Contrastive embedding of banknote scans with a bank of earlier embeddings."""
import numpy as np
import torch
from torch import nn

SERIES, PIXELS, DIM = 40, 400, 256
STEPS, BATCH, NEGATIVES = 900, 64, 512
PROBE, REFERENCE = 1500, 6000


def scans(rng, prints, n):
    series = rng.integers(0, SERIES, n)
    base = prints[series]
    wear = rng.uniform(0.3, 1.0, (n, 1)).astype(np.float32)
    a = wear * base + rng.normal(0, 0.6, base.shape).astype(np.float32)
    b = wear * base + rng.normal(0, 0.6, base.shape).astype(np.float32)
    return torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(series)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(PIXELS, 384), nn.ReLU(), nn.Linear(384, 384), nn.ReLU(),
                                 nn.Linear(384, DIM))

    def forward(self, x):
        return nn.functional.normalize(self.net(x), dim=1)


@torch.no_grad()
def series_agreement(encoder, probe, probe_series, ref, ref_series):
    zp, zr = encoder(probe), encoder(ref)
    near = (zp @ zr.T).topk(10, dim=1).indices
    votes = nn.functional.one_hot(ref_series[near], SERIES).sum(1)
    return (votes.argmax(1) == probe_series).float().mean().item()


def main():
    torch.manual_seed(44)
    rng = np.random.default_rng(44)
    prints = rng.normal(size=(SERIES, PIXELS)).astype(np.float32) * 0.35
    probe, _, probe_series = scans(rng, prints, PROBE)
    ref, _, ref_series = scans(rng, prints, REFERENCE)
    encoder = Encoder()
    opt = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    gen = torch.Generator().manual_seed(45)
    bank = nn.functional.normalize(torch.randn(NEGATIVES, DIM, generator=gen), dim=1)
    for step in range(1, STEPS + 1):
        a, b, _ = scans(rng, prints, BATCH)
        za, zb = encoder(a), encoder(b)
        pick = torch.randint(0, len(bank), (NEGATIVES,), generator=gen)
        same = (za * zb).sum(1, keepdim=True)
        other = za @ bank[pick].T
        logits = torch.cat([same, other], dim=1) / 0.2
        loss = nn.functional.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long))
        opt.zero_grad()
        loss.backward()
        opt.step()
        bank = torch.cat([bank, zb.detach()])
        if step % 15 == 0:
            score = series_agreement(encoder, probe, probe_series, ref, ref_series)
        if step % 300 == 0:
            print(f"step {step}  loss {loss.item():.4f}  same series among neighbours {score:.3f}")
    print(f"bank {tuple(bank.shape)}")


if __name__ == "__main__":
    main()
