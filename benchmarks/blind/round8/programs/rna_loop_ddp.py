"""Predict loop content of RNA molecules; two ranks with DistributedDataParallel."""
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MOLECULES = 3072
BATCH = 32
EPOCHS = 3


def make_molecules(seed=6):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(20, 240, MOLECULES)
    molecules = []
    for length in lengths:
        bases = rng.integers(1, 5, length)
        target = np.mean((bases[1:] == 3) & (bases[:-1] == 2)) * 8
        molecules.append((torch.from_numpy(bases), float(target)))
    return sorted(molecules, key=lambda item: len(item[0]))


class LoopNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.base = nn.Embedding(5, width, padding_idx=0)
        self.place = nn.Embedding(256, width)
        layer = nn.TransformerEncoderLayer(width, 4, 256, dropout=0.0, batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, bases):
        mask = bases == 0
        x = self.base(bases) + self.place(torch.arange(bases.shape[1]))
        x = self.encoder(x, src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(2).float()
        return self.head((x * keep).sum(1) / keep.sum(1)).squeeze(1)


def collate(items):
    bases = nn.utils.rnn.pad_sequence([b for b, _ in items], batch_first=True)
    return bases, torch.tensor([t for _, t in items])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    molecules = make_molecules()
    share = len(molecules) // world
    mine = molecules[rank * share:(rank + 1) * share]
    batches = [collate(mine[i:i + BATCH]) for i in range(0, len(mine), BATCH)]
    model = DistributedDataParallel(LoopNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        order = np.random.default_rng(epoch).permutation(len(batches))
        total = torch.zeros(1)
        for place in order:
            bases, target = batches[place]
            loss = nn.functional.mse_loss(model(bases), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} loss {total.item() / world / len(batches):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
