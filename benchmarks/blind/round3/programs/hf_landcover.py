"""Land cover from small multi-band tiles: `datasets` for storage, Accelerate for the loop."""
import argparse
import os
from pathlib import Path

BASE = Path(os.environ.get("TMPDIR", ".")) / "landcover"
os.environ.setdefault("HF_HOME", str(BASE / "hf"))
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from datasets import Array3D, Dataset, Features, Value, disable_progress_bars, load_from_disk
from torch import nn

disable_progress_bars()
BANDS, EDGE, CLASSES = 6, 40, 8


def export_tiles(path, n, seed=3):
    rng = np.random.default_rng(seed)
    spectrum = rng.normal(size=(CLASSES, BANDS, 1, 1)).astype(np.float32)
    label = rng.integers(0, CLASSES, n)
    second = rng.integers(0, CLASSES, n)
    mix = rng.uniform(0.5, 1.0, (n, 1, 1, 1)).astype(np.float32)
    tiles = mix * spectrum[label] + (1 - mix) * spectrum[second]
    tiles = tiles + rng.standard_normal((n, BANDS, EDGE, EDGE), dtype=np.float32)
    feats = Features({"bands": Array3D((BANDS, EDGE, EDGE), "float32"), "cover": Value("int64")})
    Dataset.from_dict({"bands": tiles, "cover": label}, features=feats).save_to_disk(str(path))


def gather_batch(rows):
    bands = torch.tensor([r["bands"] for r in rows], dtype=torch.float32)
    cover = torch.tensor([r["cover"] for r in rows])
    return bands, cover


def make_net(width=40):
    layers, c = [], BANDS
    for mult in (1, 2, 3):
        layers += [nn.Conv2d(c, width * mult, 3, padding=1), nn.BatchNorm2d(width * mult), nn.ReLU(), nn.MaxPool2d(2)]
        c = width * mult
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, CLASSES))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tiles", type=int, default=1200)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=32)
    a = p.parse_args()

    set_seed(6)
    export_tiles(BASE / "tiles", a.tiles)
    ds = load_from_disk(str(BASE / "tiles"))
    split = ds.train_test_split(test_size=0.1, seed=6)
    acc = Accelerator(cpu=True)
    net = make_net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    train = torch.utils.data.DataLoader(split["train"], batch_size=a.batch, shuffle=True, collate_fn=gather_batch)
    test = torch.utils.data.DataLoader(split["test"], batch_size=a.batch, collate_fn=gather_batch)
    net, opt, train, test = acc.prepare(net, opt, train, test)

    for epoch in range(a.epochs):
        net.train()
        for x, y in train:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            acc.backward(loss)
            opt.step()
    net.eval()
    right = seen = 0
    with torch.no_grad():
        for x, y in test:
            guess, y = acc.gather_for_metrics((net(x).argmax(1), y))
            right += int((guess == y).sum())
            seen += len(y)
    acc.print(f"last loss {loss.item():.2f}, test accuracy {right / seen:.2f}")


if __name__ == "__main__":
    main()
