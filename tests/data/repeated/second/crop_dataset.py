"""
verdict: same
stack:
  DataLoader(CropDataset(Path(args.root)), batch_size=16, num_workers=0)
  lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__
  lib:torch/utils/data/_utils/fetch.py:fetch
  self.annotations()
  json.load(handle)
call: self.annotations()
loop: def __getitem__(self, index)
why: the same annotation file is parsed again for each item and nothing writes to it
"""
import argparse
import json
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class CropDataset(Dataset):
    def __init__(self, root, size=128):
        self.root = root
        self.size = size
        self.files = sorted((root / "images").glob("*.jpg"))

    def __len__(self):
        return len(self.files)

    def annotations(self):
        with open(self.root / "instances.json") as handle:
            raw = json.load(handle)
        boxes = {}
        for entry in raw["annotations"]:
            boxes.setdefault(entry["image_id"], entry["bbox"])
        return boxes

    def __getitem__(self, index):
        path = self.files[index]
        x, y, w, h = self.annotations()[int(path.stem)]
        image = Image.open(path).convert("RGB").crop((x, y, x + w, y + h))
        return to_tensor(image.resize((self.size, self.size)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    args = parser.parse_args()
    total = torch.zeros(3)
    count = 0
    for batch in DataLoader(CropDataset(Path(args.root)), batch_size=16, num_workers=0):
        total += batch.mean(dim=(2, 3)).sum(dim=0)
        count += len(batch)
    print("channel means", total / count)


if __name__ == "__main__":
    main()
