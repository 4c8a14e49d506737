"""Attention over residues of capsid proteins; pairs count only within a chain and nearby."""
import numpy as np
import torch
from torch import nn

PROTEINS, MAX_LEN, FEATURES = 1200, 96, 20
STEPS, BATCH, DIM, HEADS = 450, 16, 64, 4
REACH = 24


def proteins(seed):
    rng = np.random.default_rng(seed)
    items = []
    for _ in range(PROTEINS):
        n = int(rng.integers(50, MAX_LEN + 1))
        cut = int(rng.integers(15, n - 15))
        chain = [0] * cut + [1] * (n - cut)
        x = rng.normal(size=(n, FEATURES)).astype(np.float32)
        near = np.convolve(x[:, 0], np.ones(9) / 9, mode="same")
        y = (near + 0.3 * x[:, 1] > 0).astype(np.float32)
        items.append((x, y, chain))
    return items


def collate(batch):
    x = torch.zeros(len(batch), MAX_LEN, FEATURES)
    y = torch.zeros(len(batch), MAX_LEN)
    real = torch.zeros(len(batch), MAX_LEN, dtype=torch.bool)
    chains, lengths = [], []
    for b, (px, py, chain) in enumerate(batch):
        n = len(py)
        x[b, :n], y[b, :n], real[b, :n] = torch.from_numpy(px), torch.from_numpy(py), True
        chains.append(chain + [-1] * (MAX_LEN - n))
        lengths.append(n)
    return x, y, real, chains, lengths


def pair_mask(chains, lengths):
    masks = []
    for chain, n in zip(chains, lengths):
        rows = []
        for i in range(MAX_LEN):
            rows.append([
                i == j or (i < n and j < n and chain[i] == chain[j] and abs(i - j) <= REACH)
                for j in range(MAX_LEN)
            ])
        masks.append(rows)
    return torch.tensor(masks)[:, None]


class ContactNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATURES, DIM)
        self.qkv = nn.ModuleList([nn.Linear(DIM, 3 * DIM) for _ in range(2)])
        self.mix = nn.ModuleList([nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, DIM), nn.GELU())
                                  for _ in range(2)])
        self.out = nn.Linear(DIM, 1)

    def forward(self, x, mask):
        h = self.inp(x)
        for qkv, mix in zip(self.qkv, self.mix):
            q, k, v = qkv(h).view(*h.shape[:2], 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
            a = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            h = h + mix(a.transpose(1, 2).reshape(h.shape))
        return self.out(h).squeeze(-1)


def main():
    torch.manual_seed(14)
    items = proteins(14)
    model = ContactNet()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    gen = torch.Generator().manual_seed(15)
    right = count = 0
    for step in range(STEPS):
        pick = torch.randint(0, PROTEINS, (BATCH,), generator=gen).tolist()
        x, y, real, chains, lengths = collate([items[i] for i in pick])
        logits = model(x, pair_mask(chains, lengths))
        loss = nn.functional.binary_cross_entropy_with_logits(logits[real], y[real])
        opt.zero_grad()
        loss.backward()
        opt.step()
        right += ((logits > 0) == (y > 0.5))[real].sum().item()
        count += int(real.sum())
        if (step + 1) % 150 == 0:
            print(f"step {step + 1}  residue accuracy {right / count:.4f}")
            right = count = 0


if __name__ == "__main__":
    main()
