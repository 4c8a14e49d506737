"""Linear probe: do features of a pretrained crater encoder tell fresh from eroded craters? (Accelerate)"""
import os

os.environ.setdefault("HF_HOME", os.path.abspath("hf_home"))

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 64


def crater_images(count, seed):
    g = torch.Generator().manual_seed(seed)
    line = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(line, line, indexing="ij")
    age = torch.randint(0, 4, (count,), generator=g)
    radius = 0.3 + 0.4 * torch.rand(count, 1, 1, generator=g)
    rim = 0.04 + 0.05 * age.view(-1, 1, 1)
    dist = (xx**2 + yy**2).sqrt()
    relief = torch.exp(-((dist - radius) / rim) ** 2) * (1.2 - 0.15 * age.view(-1, 1, 1))
    slope = torch.stack([relief, relief.roll(2, dims=1), relief.roll(2, dims=2)], dim=1)
    return slope + 0.25 * torch.randn(slope.shape, generator=g), age


class Encoder(nn.Module):
    """Stands for the encoder trained on the unlabelled mosaic."""

    def __init__(self):
        super().__init__()
        widths = [3, 32, 64, 128]
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(widths[:-1], widths[1:]))
        self.norms = nn.ModuleList(nn.BatchNorm2d(b) for b in widths[1:])

    def forward(self, x):
        pooled = []
        for conv, norm in zip(self.convs, self.norms):
            x = F.relu(norm(conv(x)))
            pooled.append(x.amax(dim=(2, 3)))
            x = F.avg_pool2d(x, 2)
        return torch.cat(pooled, dim=1)


class Probe(nn.Module):
    def __init__(self, encoder, size, classes):
        super().__init__()
        self.encoder = encoder
        self.norm = nn.LayerNorm(size)
        self.linear = nn.Linear(size, classes)

    def forward(self, x):
        self.encoder.eval()
        z = self.encoder(x)
        return self.linear(self.norm(z))


def pretrained():
    torch.manual_seed(1234)
    return Encoder()


def main():
    accelerator = Accelerator(cpu=True)
    probe = Probe(pretrained(), 32 + 64 + 128, 4)
    head = list(probe.norm.parameters()) + list(probe.linear.parameters())
    opt = torch.optim.SGD(head, lr=0.3, momentum=0.9)
    x, age = crater_images(1216, 3)
    order = torch.Generator().manual_seed(4)
    train = DataLoader(TensorDataset(x[:1024], age[:1024]), batch_size=32, shuffle=True, generator=order)
    test = DataLoader(TensorDataset(x[1024:], age[1024:]), batch_size=64)
    probe, opt, train, test = accelerator.prepare(probe, opt, train, test)

    for epoch in range(3):
        probe.train()
        seen = 0.0
        for images, ages in train:
            loss = F.cross_entropy(probe(images), ages)
            opt.zero_grad()
            accelerator.backward(loss)
            opt.step()
            seen += loss.item()
        accelerator.print(f"epoch {epoch}: loss {seen / len(train):.3f}")

    probe.eval()
    right = 0
    with torch.no_grad():
        for images, ages in test:
            guess, truth = accelerator.gather_for_metrics((probe(images).argmax(1), ages))
            right += (guess == truth).sum().item()
    accelerator.print(f"probe accuracy {right / 192:.2f}")


if __name__ == "__main__":
    main()
