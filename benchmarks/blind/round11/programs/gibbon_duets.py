"""Classifies the caller of a gibbon duet from the spectrogram of the whole bout."""
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.allow_tf32 = True

CALLERS = 24
BATCH = 16 if device.type == "cuda" else 2
MELS = 64


class Stage(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.a = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.na = nn.BatchNorm2d(c_out)
        self.b = nn.Conv2d(c_out, c_out, 3, padding=1, bias=False)
        self.nb = nn.BatchNorm2d(c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1)

    def forward(self, x):
        y = F.relu(self.na(self.a(x)))
        y = self.nb(self.b(y))
        return F.max_pool2d(F.relu(y + self.skip(x)), 2)


class DuetNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1, 48, 96, 160]
        self.stages = nn.Sequential(*(Stage(a, b) for a, b in zip(widths, widths[1:])))
        self.head = nn.Linear(widths[-1], CALLERS)

    def forward(self, x):
        return self.head(self.stages(x).mean((2, 3)))


def load_bouts(count, rng):
    """Bouts of one recording day: (caller, spectrogram of MELS x frames)."""
    tape = rng.standard_normal((MELS, 40_000)).astype(np.float32)
    bouts = []
    for _ in range(count):
        frames = int(np.clip(rng.gamma(6.0, 70.0), 160, 1200))
        at = int(rng.integers(0, tape.shape[1] - frames))
        bouts.append((int(rng.integers(CALLERS)), tape[:, at:at + frames]))
    return bouts


def batches(bouts, rng):
    while True:
        order = rng.permutation(len(bouts))
        for at in range(0, len(order) - BATCH + 1, BATCH):
            chosen = [bouts[i] for i in order[at:at + BATCH]]
            longest = max(spec.shape[1] for _, spec in chosen)
            x = np.zeros((BATCH, 1, MELS, longest), np.float32)
            for row, (caller, spec) in enumerate(chosen):
                x[row, 0, :, :spec.shape[1]] = spec
            yield torch.from_numpy(x), torch.tensor([caller for caller, _ in chosen])


def main():
    rng = np.random.default_rng(17)
    torch.manual_seed(17)
    bouts = load_bouts(6000, rng)
    net = DuetNet().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    steps, running = 0, torch.zeros((), device=device)
    begin = time.perf_counter()
    for x, y in batches(bouts, rng):
        x, y = x.to(device), y.to(device)
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running = 0.95 * running + 0.05 * loss.detach()
        steps += 1
        if time.perf_counter() - begin > budget_s:
            break
    print(f"done: {steps} steps, loss {running.item():.3f}")


if __name__ == "__main__":
    main()
