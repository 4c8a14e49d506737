"""Sorts microscope photographs of sponge spicules; pictures are streamed from pack files."""
import io
import struct
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

PICTURES, SIZE, EPOCHS = 800, 384, 3
CLASSES = 5


def write_pack(path):
    rng = np.random.default_rng(2)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    with open(path, "wb") as pack:
        for index in range(PICTURES):
            label = index % CLASSES
            angle = rng.uniform(0, np.pi)
            wave = np.sin(2 * np.pi * (label + 2) * (xx * np.cos(angle) + yy * np.sin(angle)))
            grey = 120 + 60 * wave + rng.integers(-40, 40, (SIZE, 1))
            picture = Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8)).convert("RGB")
            buffer = io.BytesIO()
            picture.save(buffer, "JPEG", quality=92)
            data = buffer.getvalue()
            pack.write(struct.pack("<II", label, len(data)) + data)


def prepare(data):
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    picture = ImageOps.autocontrast(picture.filter(ImageFilter.GaussianBlur(2)))
    picture = picture.resize((64, 64), Image.BICUBIC)
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255 - 0.5


class SpiculePack(IterableDataset):
    def __init__(self, path):
        self.path = path

    def pictures(self, share, shares):
        with open(self.path, "rb") as pack:
            number = 0
            while header := pack.read(8):
                label, length = struct.unpack("<II", header)
                data = pack.read(length)
                yield number, prepare(data), label
                number += 1

    def __iter__(self):
        worker = get_worker_info()
        share, shares = (worker.id, worker.num_workers) if worker else (0, 1)
        for number, picture, label in self.pictures(share, shares):
            if number % shares == share:
                yield picture, label


def main():
    torch.manual_seed(2)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "spicules.pack"
    write_pack(path)
    loader = DataLoader(SpiculePack(path), batch_size=50, num_workers=2, persistent_workers=True)
    net = nn.Sequential(
        nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        seen = correct = 0
        for pictures, labels in loader:
            scores = net(pictures)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(labels)
            correct += int((scores.argmax(1) == labels).sum())
        print(f"epoch {epoch}: {seen} pictures, accuracy {correct / seen:.3f}")
    folder.cleanup()


if __name__ == "__main__":
    main()
