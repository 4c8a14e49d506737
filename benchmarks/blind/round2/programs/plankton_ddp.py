"""Plankton classes from imaging flow cytometer shots; two processes, shards in tar files."""
import io
import os
import shutil
import tarfile
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

SHARDS, EACH, CLASSES = 4, 200, 5


def write_shards(folder):
    rng = np.random.default_rng(19)
    yy, xx = np.mgrid[-1:1:360j, -1:1:360j]
    for s in range(SHARDS):
        with tarfile.open(os.path.join(folder, f"p{s}.tar"), "w") as tar:
            for k in range(EACH):
                c = (k + s) % CLASSES
                ring = np.cos((4 + 3 * c) * np.hypot(xx, yy) + rng.uniform(0, 6))
                img = 128 + 60 * ring + rng.integers(-30, 30, (24, 24)).repeat(15, 0).repeat(15, 1)
                buf = io.BytesIO()
                Image.fromarray(np.stack([img] * 3, -1).clip(0, 255).astype(np.uint8)).save(buf, "JPEG", quality=88)
                info = tarfile.TarInfo(f"{k:04d}_{c}.jpg")
                info.size = buf.tell()
                buf.seek(0)
                tar.addfile(info, buf)


class Shots(IterableDataset):
    def __init__(self, folder, rank, world):
        self.folder, self.rank, self.world = folder, rank, world

    def __iter__(self):
        i = -1
        for s in range(SHARDS):
            with tarfile.open(os.path.join(self.folder, f"p{s}.tar"), "r|") as tar:
                for m in tar:
                    i += 1
                    blob = tar.extractfile(m).read()
                    img = Image.open(io.BytesIO(blob)).convert("L").resize((48, 48), Image.LANCZOS)
                    x = torch.from_numpy(np.asarray(img, dtype=np.float32) / 128 - 1)[None]
                    if i % self.world != self.rank:
                        continue
                    yield x, int(m.name[5])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    box = [tempfile.mkdtemp(prefix="plankton_") if rank == 0 else None]
    if rank == 0:
        write_shards(box[0])
    dist.broadcast_object_list(box)
    torch.manual_seed(3)
    net = DDP(nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 48, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(3),
        nn.Flatten(), nn.Linear(432, CLASSES)))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    loader = DataLoader(Shots(box[0], rank, world), batch_size=16)
    for epoch in range(4):
        total = torch.zeros(2)
        for x, y in loader:
            out = net(x)
            loss = nn.functional.cross_entropy(out, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += torch.tensor([float((out.argmax(1) == y).sum()), float(len(y))])
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch} accuracy {(total[0] / total[1]).item():.3f}", flush=True)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(box[0])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
