"""
verdict: set
stack:
  main(sorted(glob.glob("ct/*.dcm")))
  one_epoch(net, loader, optim)
  enumerate(batches)
  lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__
  lib:torch/utils/data/_utils/fetch.py:fetch
  hounsfield(self.files[index])
  pydicom.dcmread(path).pixel_array
call: hounsfield(self.files[index])
loop: for epoch in range(50)
why: shuffling changes the order only; each epoch decodes and resizes the same files again in the same way
"""
import glob

import numpy as np
import pydicom
import torch
from skimage.transform import resize
from torch import nn
from torch.utils.data import DataLoader, Dataset


def hounsfield(path, size=256):
    pixels = pydicom.dcmread(path).pixel_array.astype(np.float32) - 1024.0
    windowed = np.clip((pixels + 160) / 400, 0, 1)
    return resize(windowed, (size, size), anti_aliasing=True)


class Slices(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = hounsfield(self.files[index])
        return torch.as_tensor(image[None], dtype=torch.float32)


def one_epoch(model, batches, opt):
    total = 0.0
    for k, images in enumerate(batches):
        loss = ((model(images) - images) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += (loss.item() - total) / (k + 1)
    return total


def main(files):
    net = nn.Sequential(nn.Conv2d(1, 8, 5, 4, 2), nn.ReLU(), nn.ConvTranspose2d(8, 1, 4, 4))
    loader = DataLoader(Slices(files), batch_size=8, shuffle=True)
    optim = torch.optim.Adam(net.parameters())
    for epoch in range(50):
        print(epoch, one_epoch(net, loader, optim))


if __name__ == "__main__":
    main(sorted(glob.glob("ct/*.dcm")))
