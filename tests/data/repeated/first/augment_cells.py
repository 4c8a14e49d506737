"""
verdict: none
stack:
  train(Cells("cells.npz"), epochs=60)
  enumerate(batches)
  lib:torch/utils/data/dataloader.py:_BaseDataLoaderIter.__next__
  lib:torch/utils/data/_utils/fetch.py:fetch
  self.augment(self.images[i])
  warp(image, self.grid, strength=self.strength)
  map_coordinates(picture, [rows + dy, cols + dx], order=3, mode="reflect")
why: the deformation field is drawn at random in each call, several levels below
"""
import numpy as np
import torch
from scipy.ndimage import gaussian_filter, map_coordinates
from torch.utils.data import DataLoader, Dataset


def smooth_noise(shape, sigma=12.0):
    return gaussian_filter(np.random.standard_normal(shape), sigma)


def warp(picture, grid, strength):
    rows, cols = grid
    dy, dx = (strength * smooth_noise(picture.shape) for _ in range(2))
    return map_coordinates(picture, [rows + dy, cols + dx], order=3, mode="reflect")


class Cells(Dataset):
    def __init__(self, path, strength=80.0):
        archive = np.load(path)
        self.images, self.counts = archive["images"], archive["counts"]
        self.grid = np.indices(self.images.shape[1:])
        self.strength = strength

    def augment(self, image):
        return warp(image, self.grid, strength=self.strength)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = self.augment(self.images[i])
        return torch.as_tensor(x[None], dtype=torch.float32), float(self.counts[i])


def train(cells, epochs):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 7, 4), torch.nn.ReLU(),
                              torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(),
                              torch.nn.Linear(256, 1))
    optim = torch.optim.Adam(net.parameters())
    batches = DataLoader(cells, batch_size=16)
    for epoch in range(epochs):
        for k, (x, y) in enumerate(batches):
            loss = ((net(x)[:, 0] - y.float()) ** 2).mean()
            optim.zero_grad()
            loss.backward()
            optim.step()


if __name__ == "__main__":
    train(Cells("cells.npz"), epochs=60)
