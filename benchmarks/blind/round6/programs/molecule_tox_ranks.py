"""Toxicity of molecules from fingerprints, two ranks with gradient accumulation."""
from contextlib import nullcontext

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

N_MOLECULES = 16_384
N_BITS = 2048
MICRO = 256
ACCUMULATE = 4
STEPS = 77
N_ASSAYS = 12


def make_molecules(rng):
    bits = rng.random((N_MOLECULES, N_BITS), dtype=np.float32) < 0.04
    motif = rng.normal(0, 1.0, (N_BITS, N_ASSAYS)) * (rng.random((N_BITS, N_ASSAYS)) < 0.05)
    score = bits.astype(np.float32) @ motif.astype(np.float32)
    noisy = score + rng.normal(0, 0.5, score.shape)
    return torch.from_numpy(bits), torch.from_numpy((noisy > 0).astype(np.float32))


def make_model():
    return nn.Sequential(
        nn.Linear(N_BITS, 512), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(512, 512), nn.ReLU(),
        nn.Linear(512, N_ASSAYS),
    )


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    bits, toxic = make_molecules(np.random.default_rng(13))
    held_bits, held_toxic = bits[-2048:], toxic[-2048:]
    bits, toxic = bits[:-2048][rank::world], toxic[:-2048][rank::world]

    model = DistributedDataParallel(make_model())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_fn = nn.BCEWithLogitsLoss()
    picker = torch.Generator().manual_seed(rank)
    running = 0.0
    for step in range(STEPS):
        optimizer.zero_grad()
        for micro in range(ACCUMULATE):
            pick = torch.randint(0, len(bits), (MICRO,), generator=picker)
            last = micro == ACCUMULATE - 1
            with nullcontext() if last else model.no_sync():
                loss = loss_fn(model(bits[pick].float()), toxic[pick]) / ACCUMULATE
                loss.backward()
            running += loss.item()
        optimizer.step()
        if rank == 0 and (step + 1) % 11 == 0:
            print(f"step {step + 1:3d}  loss {running / 11:.4f}", flush=True)
        if (step + 1) % 11 == 0:
            running = 0.0

    model.eval()
    with torch.no_grad():
        logit = model.module(held_bits[rank::world].float())
        right = ((logit > 0).float() == held_toxic[rank::world]).sum()
    counts = torch.stack([right, torch.tensor(logit.numel())])
    dist.all_reduce(counts)
    if rank == 0:
        print(f"held-out accuracy {(counts[0] / counts[1]).item():.4f} over {N_ASSAYS} assays")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
