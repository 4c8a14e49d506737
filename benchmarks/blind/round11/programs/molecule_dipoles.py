"""Per-atom charge model: predicts the dipole moment of water-ethanol clusters."""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
CLUSTERS = 2048 if device == "cuda" else 64
ATOMS = 96
WIDTH = 128
ELEMENTS = torch.tensor([1, 6, 8])


class ChargeModel(nn.Module):
    def __init__(self, width=WIDTH, radial=16):
        super().__init__()
        self.species = nn.Parameter(torch.randn(20, width) * 0.1)
        self.radial = nn.Linear(radial, width)
        self.mix = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(3)
        )
        self.charge = nn.Linear(width, 1)
        self.register_buffer("centres", torch.linspace(0.0, 6.0, radial))

    def forward(self, z, pos):
        r = (pos - pos.mean(1, keepdim=True)).norm(dim=-1, keepdim=True)
        basis = torch.exp(-4.0 * (r - self.centres) ** 2)
        h = self.species[z] * self.radial(basis)
        for block in self.mix:
            h = h + block(h)
        q = self.charge(h)
        q = q - q.mean(1, keepdim=True)
        return (q * pos).sum(1)


def make_clusters(n, gen):
    pick = torch.randint(0, 9, (n, ATOMS), generator=gen)
    z = ELEMENTS[torch.where(pick < 6, 0, torch.where(pick < 8, 1, 2))]
    pos = torch.randn(n, ATOMS, 3, generator=gen) * 2.0
    true_q = torch.tensor([0.4, -0.1, -0.8])
    q = true_q[torch.searchsorted(ELEMENTS, z)]
    q = q - q.mean(1, keepdim=True)
    dipole = (q[..., None] * pos).sum(1)
    return z.to(device), pos.to(device), dipole.to(device)


def main():
    gen = torch.Generator().manual_seed(4)
    torch.manual_seed(4)
    train = [make_clusters(CLUSTERS, gen) for _ in range(4)]
    model = ChargeModel().to(device)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, fused=device == "cuda")

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    start = time.perf_counter()
    steps, shown = 0, float("nan")
    while time.perf_counter() - start < budget_s:
        z, pos, dipole = train[steps % len(train)]
        loss = F.mse_loss(model(z, pos), dipole)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        steps += 1
        if steps % 10 == 0:
            shown = loss.item()
    print(f"done: {steps} steps, loss {shown:.3f}")


if __name__ == "__main__":
    main()
