"""Training fed by a DataLoader without workers, whose dataset decodes and filters every item
slowly in Python, so that waiting for the next batch is really computing on the main thread."""

import itertools
import json
import random
import sys
import zlib
from time import perf_counter as clock

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = {"load": "mixed", "forward": "native", "backward": "native", "augment": "native"}


class Packed(Dataset):
    def __init__(self, count: int) -> None:
        rng = random.Random(17)
        self.items = [zlib.compress(bytes(rng.choices(range(64), k=3072))) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> torch.Tensor:
        values, previous = [], 0
        for value in zlib.decompress(self.items[index]):
            previous = (previous + value) // 2
            values.append(previous / 64)
        return torch.tensor(values).view(3, 32, 32)


def main(seconds: float) -> None:
    torch.manual_seed(17)
    torch.set_num_threads(1)
    loader = DataLoader(Packed(400), batch_size=32, shuffle=True, num_workers=0, drop_last=True)
    batches = itertools.chain.from_iterable(itertools.repeat(loader))
    conv = nn.Conv2d(3, 24, 5)
    conv(next(batches)).mean().backward()
    loaded = augmented = ahead = back = 0.0
    t4 = start = clock()
    while t4 - start < seconds:
        t0 = clock()
        batch = next(batches)  #: load
        t1 = clock()
        batch = nn.functional.interpolate(batch, scale_factor=2.0, mode="bicubic")  #: augment
        t2 = clock()
        out = conv(batch).mean()  #: forward
        t3 = clock()
        out.backward()  #: backward
        t4 = clock()
        loaded, augmented = loaded + t1 - t0, augmented + t2 - t1
        ahead, back = ahead + t3 - t2, back + t4 - t3
    stretches = {"load": loaded, "augment": augmented, "forward": ahead, "backward": back}
    print(json.dumps({"loop_s": t4 - start, "stretches": stretches}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
