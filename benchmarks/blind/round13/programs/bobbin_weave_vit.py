"""Recognise weaves of bobbin lace ribbons with a small vision transformer."""
import numpy as np
import torch
from torch import nn

SIDE = 64
PATCH = 8
WEAVES = 6
RIBBONS = 512
EPOCHS = 6
BATCH = 32


def make_ribbons(count, seed):
    rng = np.random.default_rng(seed)
    weave = rng.integers(0, WEAVES, count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    phase = rng.uniform(0, 6.28, (count, 2, 1, 1)).astype(np.float32)
    step = (0.4 + 0.12 * weave).astype(np.float32)[:, None, None]
    pattern = np.sin(step * xx + phase[:, 0]) * np.sin(step * (yy + 0.3 * xx) + phase[:, 1])
    pattern += rng.normal(0, 0.6, pattern.shape).astype(np.float32)
    return torch.from_numpy(pattern[:, None]), torch.from_numpy(weave)


class WeaveNet(nn.Module):
    def __init__(self, width=128, depth=4):
        super().__init__()
        self.cut = nn.Conv2d(1, width, PATCH, stride=PATCH)
        self.place = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, WEAVES)

    def forward(self, x):
        tokens = self.cut(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.body(tokens).mean(1))


def main():
    torch.manual_seed(7)
    torch.set_num_threads(2)
    x, y = make_ribbons(RIBBONS, 1)
    x_test, y_test = make_ribbons(128, 2)
    net = WeaveNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4)
    for epoch in range(EPOCHS):
        net.train()
        total = 0.0
        for pick in torch.randperm(RIBBONS).split(BATCH):
            loss = nn.functional.cross_entropy(net(x[pick]), y[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        net.eval()
        with torch.inference_mode():
            right = (net(x_test).argmax(1) == y_test).float().mean().item()
        print(f"epoch {epoch}: loss {total * BATCH / RIBBONS:.4f} test accuracy {right:.3f}", flush=True)


if __name__ == "__main__":
    main()
