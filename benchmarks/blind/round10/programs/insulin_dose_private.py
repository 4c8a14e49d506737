"""Private training (clipped and noised gradients) of an insulin dose recommender."""
import numpy as np
import torch
from torch import nn

PATIENTS, SIGNALS, DOSES = 9000, 36, 8
STEPS, BATCH = 700, 64
CLIP, NOISE, RATE = 1.0, 0.6, 0.25


def diaries(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(PATIENTS, SIGNALS)).astype(np.float32)
    need = 2.0 * x[:, 0] + x[:, 1] - 0.8 * x[:, 2] * (x[:, 3] > 0) + 0.5 * np.abs(x[:, 4])
    edges = np.quantile(need, np.linspace(0, 1, DOSES + 1)[1:-1])
    return torch.from_numpy(x), torch.from_numpy(np.digitize(need, edges))


def build():
    return nn.Sequential(
        nn.Linear(SIGNALS, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, DOSES))


def clipped_sum(model, params, x, y):
    total = [torch.zeros_like(p) for p in params]
    for i in range(len(x)):
        loss = nn.functional.cross_entropy(model(x[i:i + 1]), y[i:i + 1])
        grads = torch.autograd.grad(loss, params)
        norm = torch.sqrt(sum((g ** 2).sum() for g in grads))
        scale = torch.clamp(CLIP / (norm + 1e-6), max=1.0)
        for t, g in zip(total, grads):
            t += scale * g
    return total


def main():
    torch.manual_seed(23)
    x, y = diaries(23)
    test_x, test_y = x[-1500:], y[-1500:]
    model = build()
    params = list(model.parameters())
    gen = torch.Generator().manual_seed(24)
    for step in range(STEPS):
        pick = torch.randint(0, PATIENTS - 1500, (BATCH,), generator=gen)
        total = clipped_sum(model, params, x[pick], y[pick])
        with torch.no_grad():
            for p, t in zip(params, total):
                noise = NOISE * CLIP * torch.randn(t.shape, generator=gen)
                p -= RATE * (t + noise) / BATCH
        if (step + 1) % 175 == 0:
            with torch.no_grad():
                guess = model(test_x).argmax(1)
            near = ((guess - test_y).abs() <= 1).float().mean().item()
            print(f"step {step + 1}  within one dose step {near:.3f}")
    size = sum(p.numel() for p in params)
    print(f"parameters {size}, patients {PATIENTS}, noise {NOISE}")


if __name__ == "__main__":
    main()
