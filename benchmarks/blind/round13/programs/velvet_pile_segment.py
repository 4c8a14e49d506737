"""Segment crushed and singed areas of velvet pile."""
import numpy as np
import torch
from scipy.ndimage import distance_transform_edt, gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 96
CLASSES = 3
EPOCHS = 5


def make_swatches(count, seed):
    rng = np.random.default_rng(seed)
    images = np.zeros((count, 1, SIDE, SIDE), dtype=np.float32)
    masks = np.zeros((count, SIDE, SIDE), dtype=np.int64)
    for k in range(count):
        field = gaussian_filter(rng.normal(size=(SIDE, SIDE)), 8)
        field /= field.std()
        masks[k] = (field > 0.8).astype(int) + 2 * (field < -0.9).astype(int)
        images[k, 0] = 0.4 * masks[k] + rng.normal(0, 0.3, (SIDE, SIDE))
    return images, masks


def border_weight(mask):
    """Pixels close to a border between classes count more."""
    weight = np.ones(mask.shape, dtype=np.float32)
    for c in range(CLASSES):
        inside = distance_transform_edt(mask == c)
        outside = distance_transform_edt(mask != c)
        weight += 2.0 * np.exp(-((inside + outside) ** 2) / 18.0).astype(np.float32)
    return weight


class Swatches(Dataset):
    def __init__(self, images, masks):
        self.images = images
        self.masks = masks

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        mask = self.masks[index]
        weight = border_weight(mask)
        return torch.from_numpy(self.images[index]), torch.from_numpy(mask), torch.from_numpy(weight)


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, CLASSES, 3, padding=1),
    )


@torch.no_grad()
def validate(net, images, masks):
    table = torch.zeros(CLASSES, CLASSES)
    guess = net(torch.from_numpy(images)).argmax(1)
    truth = torch.from_numpy(masks)
    for t, p in zip(truth.view(-1), guess.view(-1)):
        table[t.long(), p.long()] += 1
    overlap = table.diag() / (table.sum(0) + table.sum(1) - table.diag()).clamp(min=1)
    return overlap


def main():
    torch.manual_seed(4)
    torch.set_num_threads(2)
    images, masks = make_swatches(340, 6)
    loader = DataLoader(Swatches(images[:300], masks[:300]), batch_size=20, shuffle=True)
    net = make_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        for x, mask, weight in loader:
            loss = (nn.functional.cross_entropy(net(x), mask, reduction="none") * weight).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        overlap = validate(net, images[320:], masks[320:])
        print(f"epoch {epoch}: overlap " + " ".join(f"{v:.3f}" for v in overlap.tolist()), flush=True)


if __name__ == "__main__":
    main()
