"""Classify harbour sounds from spectrograms with two processes (data parallel, gloo).

    torchrun --standalone --nproc_per_node=2 programs/harbor_noise_ddp.py
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

KINDS, BANDS, FRAMES = 6, 48, 64
CLIPS, EPOCHS, BATCH = 1536, 8, 32


def clips(count, seed):
    draw = torch.Generator().manual_seed(seed)
    kind = torch.randint(0, KINDS, (count,), generator=draw)
    band = torch.arange(BANDS)[None, :, None] / BANDS
    frame = torch.arange(FRAMES)[None, None, :] / FRAMES
    pitch = (0.15 + 0.12 * kind[:, None, None]) + 0.02 * torch.randn(count, 1, 1, generator=draw)
    beat = 2 + kind[:, None, None] % 3
    tone = torch.exp(-((band - pitch) / 0.05) ** 2) * (1 + torch.sin(6.28 * beat * frame))
    return TensorDataset((tone + 0.7 * torch.randn(count, BANDS, FRAMES, generator=draw))[:, None],
                         kind)


def build():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d((3, 4)),
        nn.Flatten(), nn.Linear(64 * 12, KINDS))


def evaluate(net, loader):
    right = torch.zeros(2)
    with torch.no_grad():
        for image, kind in loader:
            right += torch.tensor([float((net.module(image).argmax(1) == kind).sum()), len(kind)])
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(4)
    train, test = clips(CLIPS, 1), clips(320, 2)
    sampler = DistributedSampler(train, seed=5)
    loader = DataLoader(train, batch_size=BATCH, sampler=sampler)
    held = DataLoader(test, batch_size=80, sampler=DistributedSampler(test, shuffle=False))
    net = DistributedDataParallel(build())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        total = torch.zeros(1)
        for image, kind in loader:
            loss = nn.functional.cross_entropy(net(image), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        right = evaluate(net, held)
        dist.barrier()
        if rank == 0:
            mean = total.item() / len(loader) / dist.get_world_size()
            print(f"epoch {epoch}: loss {mean:.3f}, accuracy {right:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
