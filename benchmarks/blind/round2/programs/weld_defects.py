# Segmentation of weld defects in X-ray strips: small U-shaped network, everything in memory.
import sys

import torch
import torch.nn as nn

STRIPS, H, W = 440, 64, 64


def strips(n, seed):
    g = torch.Generator().manual_seed(seed)
    img = 0.2 * torch.randn(n, 1, H, W, generator=g)
    mask = torch.zeros(n, 1, H, W)
    yy, xx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    for k in range(n):
        for _ in range(int(torch.randint(1, 4, (1,), generator=g))):
            cy, cx = torch.randint(8, 56, (2,), generator=g).tolist()
            r = int(torch.randint(3, 8, (1,), generator=g))
            blob = ((yy - cy) ** 2 + (xx - cx) ** 2) < r * r
            mask[k, 0][blob] = 1.0
            img[k, 0][blob] += 0.5
    return img, mask


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                         nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())


class TinyUNet(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.d1, self.d2, self.d3 = block(1, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.u2, self.u1 = block(6 * c, 2 * c), block(3 * c, c)
        self.pool, self.up = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.out = nn.Conv2d(c, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        c = self.d3(self.pool(b))
        b = self.u2(torch.cat([b, self.up(c)], 1))
        return self.out(self.u1(torch.cat([a, self.up(b)], 1)))


def dice(logits, mask):
    p = (logits > 0).float()
    return (2 * (p * mask).sum() / (p.sum() + mask.sum()).clamp(min=1)).item()


def main(epochs=3, batch=20):
    torch.manual_seed(1)
    img, mask = strips(STRIPS, 3)
    val_img, val_mask = strips(40, 4)
    net = TinyUNet()
    opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
    crit = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
    g = torch.Generator().manual_seed(2)
    step = 0
    for epoch in range(epochs):
        net.train()
        for pick in torch.randperm(STRIPS, generator=g).split(batch):
            loss = crit(net(img[pick]), mask[pick])
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            value = loss.item()
            if step % 10 == 0:
                print(f"step {step:4d} loss {value:.4f}", file=sys.stderr)
            step += 1
        net.eval()
        with torch.no_grad():
            score = dice(net(val_img), val_mask)
        print(f"epoch {epoch} dice {score:.3f}", flush=True)


if __name__ == "__main__":
    main()
