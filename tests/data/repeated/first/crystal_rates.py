"""
verdict: same
stack:
  compare([1e-4, 3e-4, 1e-3, 3e-3], "crystals.jsonl")
  fit_one(structures, energies, lr=rate)
  list(map(descriptor, crystals))
  descriptor_sum(frac @ cell, np.array(crystal["z"]))
  np.exp(-((r[:, :, None] - CENTRES) ** 2) / 0.1)
call: list(map(descriptor, crystals))
loop: for rate in rates
why: the descriptor list of the unchanged structures is computed again for each learning rate
"""
import json

import numpy as np
import torch

CENTRES = np.linspace(0.5, 8.0, 100)


def descriptor_sum(xyz, z):
    r = np.linalg.norm(xyz[:, None] - xyz[None], axis=2)
    bumps = np.exp(-((r[:, :, None] - CENTRES) ** 2) / 0.1)
    return np.einsum("i,j,ijk->k", z, z, bumps) / len(z) ** 2


def descriptor(crystal):
    frac, cell = np.array(crystal["frac"]), np.array(crystal["cell"])
    return descriptor_sum(frac @ cell, np.array(crystal["z"]))


def fit_one(crystals, target, lr):
    x = torch.tensor(np.stack(list(map(descriptor, crystals))), dtype=torch.float32)
    y = torch.tensor(target, dtype=torch.float32)
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(100, 32), torch.nn.SiLU(), torch.nn.Linear(32, 1))
    optim = torch.optim.Adam(net.parameters(), lr=lr)
    for step in range(2000):
        loss = ((net(x)[:, 0] - y) ** 2).mean()
        optim.zero_grad()
        loss.backward()
        optim.step()
    return loss.item()


def compare(rates, path):
    with open(path) as handle:
        structures = [json.loads(line) for line in handle]
    energies = [s["energy"] for s in structures]
    losses = {}
    for rate in rates:
        losses[rate] = fit_one(structures, energies, lr=rate)
    return losses


if __name__ == "__main__":
    print(compare([1e-4, 3e-4, 1e-3, 3e-3], "crystals.jsonl"))
