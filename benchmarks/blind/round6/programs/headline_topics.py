"""Topic of news items with a deep, narrow transformer on two ranks."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn

VOCAB = 3000
N_TOPICS = 6
MAX_LEN = 160
WIDTH = 48
LAYERS = 12
BATCH = 4
STEPS = 230


def make_items(n, rng):
    items = []
    for _ in range(n):
        topic = int(rng.integers(N_TOPICS))
        length = int(np.clip(rng.gamma(3.0, 13.0), 8, MAX_LEN))
        common = rng.zipf(1.3, length) % 1800 + 1
        special = 1801 + topic * 200 + rng.integers(0, 200, length)
        words = np.where(rng.random(length) < 0.15, special, common)
        items.append((words, topic))
    return items


def collate(items):
    width = MAX_LEN
    tokens = np.zeros((len(items), width), np.int64)
    for row, (words, _) in enumerate(items):
        tokens[row, : len(words)] = words
    return torch.from_numpy(tokens), torch.tensor([topic for _, topic in items])


class TopicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB + 1, WIDTH, padding_idx=0)
        self.places = nn.Parameter(0.02 * torch.randn(MAX_LEN, WIDTH))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(LAYERS)
        )
        self.head = nn.Linear(WIDTH, N_TOPICS)

    def forward(self, tokens):
        empty = tokens == 0
        z = self.words(tokens) + self.places[: tokens.shape[1]]
        for layer in self.layers:
            z = layer(z, src_key_padding_mask=empty)
        z = z.masked_fill(empty[..., None], 0.0).sum(1) / (~empty).sum(1, keepdim=True)
        return self.head(z)


def average_gradients(model, world):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= world


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = TopicNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    items = make_items(3000, np.random.default_rng(31))[rank::world]
    rng = np.random.default_rng(rank)
    recent = []
    for step in range(STEPS):
        picked = [items[i] for i in rng.integers(0, len(items), BATCH)]
        tokens, topic = collate(picked)
        logit = model(tokens)
        loss = nn.functional.cross_entropy(logit, topic)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        recent.append(loss.item())
        if rank == 0 and (step + 1) % 46 == 0:
            print(f"step {step + 1:4d}  loss {np.mean(recent[-46:]):.4f}", flush=True)
    total = torch.tensor([np.mean(recent[-100:])])
    dist.all_reduce(total)
    if rank == 0:
        print(f"mean loss of both ranks at the end {total.item() / world:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
