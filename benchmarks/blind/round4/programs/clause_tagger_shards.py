"""Tag the clauses of a contract archive with a transformer, two workers share the archive.

torchrun --standalone --nproc_per_node=2 clause_tagger_shards.py
"""
import os
from collections import Counter

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
TAGS = ["liability", "payment", "termination", "privacy", "warranty", "venue", "notice"]
VOCAB = 4000


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ClauseTagger(nn.Module):
    def __init__(self, dim=128, depth=3, heads=4):
        super().__init__()
        self.words = nn.Embedding(VOCAB, dim)
        self.places = nn.Embedding(512, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, len(TAGS))

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x, mask)
        pooled = (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return self.head(pooled).softmax(-1)


def load_archive(count=2000):
    rng = np.random.default_rng(17)
    lengths = np.clip(np.exp(rng.normal(5.0, 0.6, count)), 12, 480).astype(int)
    return [torch.from_numpy(rng.integers(1, VOCAB, n)) for n in lengths]


def collate(docs):
    width = max(len(d) for d in docs)
    ids = torch.zeros(len(docs), width, dtype=torch.long)
    for row, d in enumerate(docs):
        ids[row, :len(d)] = d
    return ids, ids > 0


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    docs = load_archive()
    # sort by length so that a batch holds little padding
    order = sorted(range(len(docs)), key=lambda i: len(docs[i]))
    batches = [order[i:i + 16] for i in range(0, len(order), 16)]
    per_rank = (len(batches) + world - 1) // world
    mine = batches[rank * per_rank:(rank + 1) * per_rank]

    torch.manual_seed(5)
    model = ClauseTagger().eval()
    found = {}
    with torch.inference_mode():
        for picks in mine:
            probs = model(*collate([docs[i] for i in picks]))
            best = probs.max(-1)
            for i, tag, p in zip(picks, best.indices.tolist(), best.values.tolist()):
                found[i] = (tag, p)

    parts = [None] * world if rank == 0 else None
    dist.gather_object(found, parts, dst=0)
    if rank == 0:
        merged = {}
        for part in parts:
            merged.update(part)
        counts = Counter(TAGS[tag] for tag, _ in merged.values())
        print(len(merged), "clauses:", ", ".join(f"{t} {counts[t]}" for t in TAGS))
        print(f"mean confidence {np.mean([p for _, p in merged.values()]):.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
