"""Language model on event logs, two data-parallel ranks over gloo, large effective batch by accumulation.

torchrun --standalone --nproc_per_node=2 ddp_loglm.py
"""
import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

EVENTS, LENGTH, WIDTH = 4000, 32, 512
MICRO, ACCUMULATE, UPDATES = 4, 8, 10


def event_log(n, seed):
    rng = np.random.default_rng(seed)
    jump = np.random.default_rng(1).integers(0, EVENTS, EVENTS)
    seq = np.empty((n, LENGTH + 1), np.int64)
    seq[:, 0] = rng.integers(0, EVENTS, n)
    for t in range(LENGTH):
        seq[:, t + 1] = np.where(rng.random(n) < 0.9, jump[seq[:, t] % 50], rng.integers(0, EVENTS, n))
    return torch.from_numpy(seq)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, h):
        b, t, d = h.shape
        q, k, v = (z.view(b, t, 8, d // 8).transpose(1, 2) for z in self.qkv(self.n1(h)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.mix(a.transpose(1, 2).reshape(b, t, d))
        return h + self.mlp(self.n2(h))


class LogLM(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.emb = nn.Embedding(EVENTS, WIDTH)
        self.pos = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = nn.Sequential(*[Layer() for _ in range(layers)])
        self.out = nn.Linear(WIDTH, EVENTS)

    def forward(self, seq):
        h = self.layers(self.emb(seq[:, :-1]) + self.pos)
        return F.cross_entropy(self.out(h).flatten(0, 1), seq[:, 1:].flatten())


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7)
    model = DDP(LogLM())
    opt = torch.optim.AdamW(model.parameters(), lr=4e-4)
    share = event_log(MICRO * ACCUMULATE * UPDATES * world, seed=2)[rank::world]
    batches = iter(share.split(MICRO))
    for update in range(UPDATES):
        total = torch.zeros(())
        for micro in range(ACCUMULATE):
            loss = model(next(batches)) / ACCUMULATE
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        dist.all_reduce(total)
        if rank == 0 and update % 3 == 0:
            print(f"update {update}: loss {total / world:.2f}", flush=True)
    if rank == 0:
        print(f"final loss {total / world:.2f}, {sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
