"""
verdict: none
stack:
  train(load_cells("cells.npz"), epochs=60)
  iter(views)
  self.view(image)
  ndimage.map_coordinates(picture, warped, order=3, mode="reflect")
why: the same images come again in each epoch, but each view is deformed at random
"""
import numpy as np
import torch
from scipy import ndimage


class ElasticViews:
    def __init__(self, images, labels, seed=0):
        self.images = images
        self.labels = labels
        self.rng = np.random.default_rng(seed)

    def field(self, shape, strength=25.0, smooth=6.0):
        noise = self.rng.uniform(-1, 1, (2, *shape))
        return strength * np.stack([ndimage.gaussian_filter(n, smooth) for n in noise])

    def view(self, picture):
        grid = np.mgrid[: picture.shape[0], : picture.shape[1]].astype(float)
        warped = grid + self.field(picture.shape)
        return ndimage.map_coordinates(picture, warped, order=3, mode="reflect")

    def __iter__(self):
        for image, label in zip(self.images, self.labels):
            yield torch.from_numpy(self.view(image)).float()[None, None], torch.tensor([label])


def load_cells(path):
    archive = np.load(path)
    return ElasticViews(archive["images"], archive["labels"].tolist())


def train(views, epochs):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 16, 5, 2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(4),
                              torch.nn.Flatten(), torch.nn.Linear(256, 4))
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        for x, target in iter(views):
            loss = torch.nn.functional.cross_entropy(net(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return net


if __name__ == "__main__":
    torch.save(train(load_cells("cells.npz"), epochs=60), "net.pt")
