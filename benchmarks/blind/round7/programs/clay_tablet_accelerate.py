"""Restore broken signs of clay tablets with a masked transformer, under Accelerate."""
import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

SIGNS, TABLETS, BATCH, EPOCHS, WIDTH = 300, 2600, 26, 2, 128


class Tablets(Dataset):
    """Lines of signs with a simple grammar, sorted by length so that batches are even."""

    def __init__(self):
        rng = np.random.default_rng(77)
        follow = rng.integers(3, SIGNS, (SIGNS, 4))
        length = np.sort(np.clip(rng.lognormal(3.6, 0.5, TABLETS).astype(int), 10, 120))
        self.lines = []
        for size in length:
            line = [int(rng.integers(3, SIGNS))]
            for choice in rng.integers(0, 4, size - 1):
                line.append(int(follow[line[-1], choice]))
            self.lines.append(torch.tensor(line))

    def __len__(self):
        return TABLETS

    def __getitem__(self, i):
        return self.lines[i]


class EvenBatches(Sampler):
    """Neighbours in length form a batch; the batches come in random order."""

    batch_size, drop_last = BATCH, False

    def __init__(self):
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return TABLETS // BATCH

    def __iter__(self):
        for b in np.random.default_rng(self.epoch).permutation(len(self)):
            yield list(range(b * BATCH, (b + 1) * BATCH))


def collate(lines):
    return nn.utils.rnn.pad_sequence(lines, batch_first=True)


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sign = nn.Embedding(SIGNS, WIDTH, padding_idx=0)
        self.place = nn.Parameter(0.02 * torch.randn(128, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True,
                                           activation="gelu")
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, SIGNS)

    def forward(self, signs, pad):
        h = self.sign(signs) + self.place[:signs.shape[1]]
        return self.out(self.body(h, src_key_padding_mask=pad))


def main():
    torch.manual_seed(77)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(Tablets(), batch_sampler=EvenBatches(), collate_fn=collate)
    model = Restorer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(EPOCHS):
        total, count = 0.0, 0
        for signs in loader:
            pad = signs == 0
            broken = (torch.rand(signs.shape) < 0.15) & ~pad
            logits = model(signs.masked_fill(broken, 1), pad)
            loss = nn.functional.cross_entropy(logits[broken], signs[broken])
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
            count += 1
        print(f"epoch {epoch}: loss {total / count:.4f} over {count} batches")


if __name__ == "__main__":
    main()
