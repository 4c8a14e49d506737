"""Warn of tokamak disruptions from diagnostics, data-parallel over two ranks."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIGNALS, WINDOW, SHOTS, BATCH, EPOCHS = 10, 256, 3200, 50, 6


def shots(n, seed):
    """Noisy diagnostics; before a disruption a locked mode grows."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 1, WINDOW)
    fatal = rng.random(n) < 0.4
    x = np.cumsum(rng.normal(0, 0.15, (n, SIGNALS, WINDOW)), axis=2)
    onset = rng.uniform(0.5, 0.9, n)
    growth = np.clip((t - onset[:, None]) / 0.1, 0, 1.5)
    mode = growth * np.sin(2 * np.pi * 30 * t)
    x[fatal, :3] += 0.8 * mode[fatal][:, None]
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(fatal.astype(np.float32))


class Warner(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], SIGNALS
        for out in (48, 64, 64):
            layers += [nn.Conv1d(width, out, 7, padding=3), nn.GELU(), nn.AvgPool1d(2)]
            width = out
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x).amax(2)).squeeze(1)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(44)
    x, y = shots(SHOTS, 1)
    x, y = x[rank::world].contiguous(), y[rank::world].contiguous()
    test_x, test_y = shots(600, 2)
    test_x, test_y = test_x[rank::world], test_y[rank::world]
    model = DistributedDataParallel(Warner(), gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(rank)
    for epoch in range(EPOCHS):
        model.train()
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            loss = nn.functional.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            logit = torch.cat([model.module(part) for part in test_x.split(100)])
        tally = torch.tensor([((logit > 0) == (test_y > 0.5)).sum().item(), len(test_y)])
        dist.all_reduce(tally)
        if rank == 0:
            print(f"epoch {epoch}: accuracy {tally[0].item() / tally[1].item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
