"""Embed a collection of sermons with two processes and list the closest pairs.

    torchrun --standalone --nproc_per_node=2 programs/sermon_index.py
"""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

SERMONS, WORDS, WIDTH, BATCH = 3000, 3000, 192, 16


def collection():
    """Word numbers of every sermon, and the numbers of the sermons ordered by length."""
    rng = np.random.default_rng(31)
    lengths = np.clip(rng.lognormal(4.6, 0.75, SERMONS).astype(int), 16, 480)
    texts = []
    for n in lengths:
        theme = rng.integers(0, 30) * 100
        common = rng.integers(3, WORDS, n)
        themed = theme + 3 + rng.integers(0, 60, n)
        texts.append(torch.from_numpy(np.where(rng.random(n) < 0.5, common, themed)))
    return texts, np.argsort(lengths, kind="stable")


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS + 100, WIDTH, padding_idx=0)
        self.places = nn.Embedding(512, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)

    def forward(self, ids):
        empty = ids == 0
        hidden = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        hidden = self.layers(hidden, src_key_padding_mask=empty)
        weight = (~empty).float()[:, :, None]
        pooled = (hidden * weight).sum(1) / weight.sum(1)
        return nn.functional.normalize(pooled, dim=1)


def embed(model, texts, numbers):
    rows = []
    with torch.no_grad():
        for start in range(0, len(numbers), BATCH):
            chosen = [texts[i] for i in numbers[start:start + BATCH]]
            ids = nn.utils.rnn.pad_sequence(chosen, batch_first=True)
            rows.append(model(ids))
    return torch.cat(rows)


def gather(tensor):
    parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, tensor)
    return torch.cat(parts)


def closest_pairs(vectors, count):
    similarity = vectors @ vectors.T
    similarity.fill_diagonal_(-1)
    best, other = similarity.max(1)
    top = best.topk(count)
    return [(int(i), int(other[i]), float(v)) for v, i in zip(top.values, top.indices)]


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    texts, order = collection()
    torch.manual_seed(12)
    model = Encoder().eval()
    share = len(order) // world
    mine = order[rank * share:(rank + 1) * share]
    vectors = gather(embed(model, texts, mine))
    numbers = gather(torch.from_numpy(mine.copy()))
    if rank == 0:
        table = torch.empty_like(vectors)
        table[numbers] = vectors
        print(f"{len(table)} sermons, {sum(len(t) for t in texts)} words")
        for a, b, value in closest_pairs(table, 4):
            print(f"sermon {a} is like sermon {b}: {value:.3f}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
