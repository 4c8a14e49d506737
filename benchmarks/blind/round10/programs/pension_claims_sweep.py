"""Chance that a pension claim is contested: a sweep over small networks in worker processes."""
import itertools
import multiprocessing as mp

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

CLAIMS, FIELDS = 12000, 24
STEPS, BATCH = 450, 128


def claims(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(CLAIMS, FIELDS)).astype(np.float32)
    score = x[:, 0] - 0.7 * x[:, 1] * x[:, 2] + 0.5 * np.sin(2 * x[:, 3]) - 0.8
    y = (rng.random(CLAIMS) < 1 / (1 + np.exp(-2 * score))).astype(np.float32)
    return x, y


def trial(setting):
    width, rate, decay = setting
    torch.set_num_threads(1)
    torch.manual_seed(width)
    x, y = claims(55)
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    cut = int(0.8 * CLAIMS)
    net = nn.Sequential(nn.Linear(FIELDS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                        nn.Linear(width, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay)
    gen = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        pick = torch.randint(0, cut, (BATCH,), generator=gen)
        logit = net(x[pick]).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        guess = net(x[cut:]).squeeze(1).numpy()
    return {"width": width, "rate": rate, "decay": decay,
            "auc": round(float(roc_auc_score(y[cut:].numpy(), guess)), 4)}


def main():
    settings = list(itertools.product([32, 64, 96, 128], [1e-3, 3e-3], [0.0, 0.1]))
    context = mp.get_context("spawn")
    with context.Pool(2, maxtasksperchild=1) as pool:
        rows = pool.map(trial, settings, chunksize=1)
    table = pd.DataFrame(rows).sort_values("auc", ascending=False)
    print(f"settings {len(table)}, claims {CLAIMS}")
    print(table.head(4).to_string(index=False))


if __name__ == "__main__":
    main()
