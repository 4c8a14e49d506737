"""Embeds reef photographs from tar shards with a fixed random network and counts near duplicates."""
import io
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

PHOTOS_PER_SHARD = 130
SHARDS = 4


def write_shards(folder):
    rng = np.random.default_rng(50)
    for s in range(SHARDS):
        with tarfile.open(folder / f"reef-{s:03d}.tar", "w") as tar:
            for k in range(PHOTOS_PER_SHARD):
                small = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
                if k % 10 == 9:
                    small = last
                img = Image.fromarray(small).resize((224, 224), Image.BILINEAR)
                buf = io.BytesIO()
                img.save(buf, "JPEG", quality=int(rng.integers(70, 95)))
                info = tarfile.TarInfo(f"{s:03d}_{k:04d}.jpg")
                info.size = buf.tell()
                buf.seek(0)
                tar.addfile(info, buf)
                last = small


class ShardStream(IterableDataset):
    def __init__(self, shards):
        self.shards = shards

    def __iter__(self):
        for shard in self.shards:
            with tarfile.open(shard, "r|") as tar:
                for member in tar:
                    img = Image.open(io.BytesIO(tar.extractfile(member).read()))
                    x = torch.from_numpy(np.array(img)).permute(2, 0, 1)
                    yield member.name, x


def backbone():
    torch.manual_seed(33)
    layers, c = [], 3
    for width in (32, 64, 128, 192):
        layers += [nn.Conv2d(c, width, 3, stride=2, padding=1), nn.ReLU(),
                   nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()


@torch.inference_mode()
def embed(net, loader):
    names, parts = [], []
    for name, x in loader:
        parts.append(nn.functional.normalize(net(x.float() / 255 - 0.5), dim=1))
        names += name
    return names, torch.cat(parts)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        write_shards(folder)
        stream = ShardStream(sorted(folder.glob("reef-*.tar")))
        loader = DataLoader(stream, batch_size=26, num_workers=1, prefetch_factor=4)
        names, e = embed(backbone(), loader)
    e = nn.functional.normalize(e - e.mean(0), dim=1)
    sim = e @ e.T
    sim.fill_diagonal_(0)
    pairs = (sim > 0.98).sum().item() // 2
    print(f"{len(names)} photographs, {pairs} pairs look the same")


if __name__ == "__main__":
    main()
