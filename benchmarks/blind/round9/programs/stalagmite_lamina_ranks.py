"""Counts annual laminae in stalagmite scans with two processes (torchrun)."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

SCANS, BATCH, EPOCHS = 840, 12, 2
CHANNELS = 4


def scans(rng):
    lengths = np.clip(rng.lognormal(5.6, 0.75, SCANS), 60, 1400).astype(int)
    profiles, counts = [], []
    for length in lengths:
        years = rng.uniform(6, 20)
        depth = np.arange(length)
        thickness = years * (1 + 0.2 * np.sin(depth / 50))
        lamina = np.sin(2 * np.pi * np.cumsum(1 / thickness))
        profile = lamina + rng.normal(0, 0.5, (CHANNELS, length))
        profiles.append(torch.from_numpy(profile.astype(np.float32)))
        counts.append(float((1 / thickness).sum()))
    return profiles, torch.tensor(counts)


class LaminaCounter(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        stages = [nn.Conv1d(CHANNELS, width, 9, padding=4), nn.ReLU()]
        for _ in range(4):
            stages += [nn.Conv1d(width, width, 9, padding=4), nn.ReLU()]
        self.stages = nn.Sequential(*stages, nn.Conv1d(width, 1, 1))

    def forward(self, profile, mask):
        rate = nn.functional.softplus(self.stages(profile).squeeze(1) - 2.0)
        return (rate * mask).sum(1)


def collate(indices, profiles):
    longest = max(profiles[i].shape[1] for i in indices)
    batch = torch.zeros(len(indices), CHANNELS, longest)
    mask = torch.zeros(len(indices), longest)
    for row, index in enumerate(indices):
        length = profiles[index].shape[1]
        batch[row, :, :length] = profiles[index]
        mask[row, :length] = 1.0
    return batch, mask


def average_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    first = 0
    for p in model.parameters():
        p.grad.copy_(flat[first:first + p.numel()].view_as(p))
        first += p.numel()


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(12)
    profiles, counts = scans(np.random.default_rng(12))
    order = np.argsort([p.shape[1] for p in profiles], kind="stable")
    mine = np.array_split(order, world)[rank]
    batches = [mine[i:i + BATCH] for i in range(0, len(mine), BATCH)]
    model = LaminaCounter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        errors = []
        for number in np.random.default_rng(epoch).permutation(len(batches)):
            indices = batches[number]
            guess = model(*collate(indices, profiles))
            target = counts[torch.from_numpy(indices)]
            loss = ((guess - target) / target).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            average_gradients(model, world)
            optimizer.step()
            errors.append(loss.item())
        mean = torch.tensor(np.mean(errors))
        dist.all_reduce(mean)
        if rank == 0:
            print(f"epoch {epoch + 1}: relative error {float(mean) / world:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
