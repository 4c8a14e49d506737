"""Segment cell nuclei in fluorescence tiles with a small U-Net."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

SIZE = 96
EPOCHS = 3
BATCH = 8


def make_tiles(count):
    g = torch.Generator().manual_seed(3)
    yy, xx = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    tiles = torch.zeros(count, 1, SIZE, SIZE)
    masks = torch.zeros(count, 1, SIZE, SIZE)
    for i in range(count):
        for _ in range(9):
            cy, cx = torch.rand(2, generator=g) * SIZE
            radius = 4 + 5 * torch.rand(1, generator=g)
            dist2 = (yy - cy) ** 2 + (xx - cx) ** 2
            tiles[i, 0] += torch.exp(-dist2 / radius**2)
            masks[i, 0][dist2 < radius**2] = 1.0
    tiles += 0.15 * torch.randn(tiles.shape, generator=g)
    return tiles, masks


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU(),
            nn.Conv2d(cout, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.ReLU(),
        )


class NucleiUNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.enc1 = DoubleConv(1, width)
        self.enc2 = DoubleConv(width, 2 * width)
        self.bottom = DoubleConv(2 * width, 4 * width)
        self.dec2 = DoubleConv(6 * width, 2 * width)
        self.dec1 = DoubleConv(3 * width, width)
        self.head = nn.Conv2d(width, 1, 1)

    def stage(self, block, x):
        return checkpoint(block, x, use_reentrant=False)

    def forward(self, x):
        a = self.stage(self.enc1, x)
        b = self.stage(self.enc2, F.max_pool2d(a, 2))
        c = self.stage(self.bottom, F.max_pool2d(b, 2))
        up = F.interpolate(c, scale_factor=2, mode="nearest")
        d = self.stage(self.dec2, torch.cat([up, b], dim=1))
        up = F.interpolate(d, scale_factor=2, mode="nearest")
        e = self.stage(self.dec1, torch.cat([up, a], dim=1))
        return self.head(e)


def dice_loss(logits, target):
    p = logits.sigmoid()
    inter = (p * target).sum(dim=(1, 2, 3))
    total = p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return 1 - ((2 * inter + 1) / (total + 1)).mean()


def main():
    torch.manual_seed(11)
    tiles, masks = make_tiles(176)
    train_x, train_y, test_x, test_y = tiles[:152], masks[:152], tiles[152:], masks[152:]
    net = NucleiUNet()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for epoch in range(EPOCHS):
        order = torch.randperm(len(train_x))
        total = 0.0
        for start in range(0, len(order), BATCH):
            pick = order[start:start + BATCH]
            logits = net(train_x[pick])
            loss = dice_loss(logits, train_y[pick]) + F.binary_cross_entropy_with_logits(logits, train_y[pick])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(pick)
        print(f"epoch {epoch}: loss {total / len(order):.3f}")
    net.eval()
    with torch.no_grad():
        score = sum(1 - dice_loss(net(test_x[i:i + 8]), test_y[i:i + 8]).item() for i in range(0, 24, 8)) / 3
    print(f"held-out dice {score:.2f}")


if __name__ == "__main__":
    main()
