"""Complete the list of perfume notes of a fragrance with a wide autoencoder."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOTES = 1800
PERFUMES = 3200
BATCH = 64
EPOCHS = 4


def make_perfumes(seed=12):
    rng = np.random.default_rng(seed)
    chords = rng.integers(0, NOTES, (90, 14))
    table = np.zeros((PERFUMES, NOTES), dtype=np.float32)
    for row in table:
        for chord in rng.integers(0, len(chords), 3):
            row[chords[chord]] = 1.0
        row[rng.integers(0, NOTES, 4)] = 1.0
    return torch.from_numpy(table)


class Composer(nn.Module):
    def __init__(self, width=1900):
        super().__init__()
        self.inward = nn.Linear(NOTES, width)
        self.middle = nn.Linear(width, width)
        self.outward = nn.Linear(width, NOTES)

    def forward(self, x):
        h = torch.relu(self.inward(x))
        h = torch.relu(self.middle(h))
        return self.outward(h)


def main():
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    table = make_perfumes()
    loader = DataLoader(TensorDataset(table), batch_size=BATCH, shuffle=True)
    model = Composer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(8.0))
    step = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "composer"
        for epoch in range(EPOCHS):
            total = 0.0
            for (notes,) in loader:
                kept = notes * (torch.rand_like(notes) > 0.3)
                loss = loss_fn(model(kept), notes)
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                total += loss.item()
                step += 1
                if step % 5 == 0:
                    accelerator.save_state(str(folder))
            print(f"epoch {epoch} loss {total / len(loader):.4f}")
        accelerator.save_state(str(folder))
        size = sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    print(f"steps {step} state {size / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
