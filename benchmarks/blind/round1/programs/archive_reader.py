# Train on thumbnails that live in one zip archive
import io
import os
import tempfile
import zipfile

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def build(path, n):
    rng = np.random.default_rng(0)
    blob = rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)
    with zipfile.ZipFile(path, "w") as z:
        for i in range(n):
            b = io.BytesIO()
            np.save(b, np.roll(blob, i, 0))
            z.writestr(f"thumbs/{i % 50:02d}/{i:06d}.npy", b.getvalue())


class Thumbs(Dataset):
    def __init__(self, path, n):
        self.path, self.n = path, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        with zipfile.ZipFile(self.path) as z:
            raw = z.read(f"thumbs/{i % 50:02d}/{i:06d}.npy")
        img = np.load(io.BytesIO(raw)).astype(np.float32) / 255
        return torch.from_numpy(img).permute(2, 0, 1), i % 10


def main():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "thumbs.zip")
        build(path, 8000)
        dl = DataLoader(Thumbs(path, 320), batch_size=32, shuffle=True)
        net = torch.nn.Sequential(
            torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Flatten(), torch.nn.Linear(64 * 256, 10))
        opt = torch.optim.SGD(net.parameters(), 0.01)
        for epoch in range(2):
            for x, y in dl:
                for _ in range(4):
                    loss = torch.nn.functional.cross_entropy(net(x), y)
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                print(epoch, loss.item(), flush=True)


if __name__ == "__main__":
    main()
