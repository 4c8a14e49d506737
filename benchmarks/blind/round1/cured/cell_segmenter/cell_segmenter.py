# U-net style segmenter for microscopy crops
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def warp(img, rng):
    """Elastic deformation, as in the paper."""
    h, w = img.shape
    dx = rng.normal(size=(h, w))
    dy = rng.normal(size=(h, w))
    for _ in range(12):
        dx = (dx + np.roll(dx, 1, 0) + np.roll(dx, -1, 0) + np.roll(dx, 1, 1) + np.roll(dx, -1, 1)) / 5
        dy = (dy + np.roll(dy, 1, 0) + np.roll(dy, -1, 0) + np.roll(dy, 1, 1) + np.roll(dy, -1, 1)) / 5
    yy, xx = np.mgrid[0:h, 0:w]
    yy = np.clip(yy + 8 * dy, 0, h - 1).astype(int)
    xx = np.clip(xx + 8 * dx, 0, w - 1).astype(int)
    return img[yy, xx]


class Crops(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(1)
        self.raw = rng.random((n, 128, 128), dtype=np.float32)

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        img = warp(self.raw[i], rng).astype(np.float32)
        return torch.from_numpy(img)[None], torch.from_numpy((img > 0.5).astype(np.float32))[None]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU())


def main():
    torch.set_num_threads(1)
    data = Crops(800)
    dl = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, persistent_workers=True)
    net = nn.Sequential(block(1, 12), block(12, 12), nn.Conv2d(12, 1, 1))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    lossf = nn.BCEWithLogitsLoss()
    for ep in range(2):
        for step, (x, y) in enumerate(dl):
            opt.zero_grad()
            loss = lossf(net(x), y)
            loss.backward()
            opt.step()
            if step % 10 == 0:
                print(ep, step, float(loss), flush=True)


if __name__ == "__main__":
    main()
