# Click-through model, runs under accelerate so that we can move it to the big machine later
import numpy as np
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset


def auc(labels, scores):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    pos = labels > 0.5
    n1, n0 = pos.sum(), (~pos).sum()
    return (ranks[pos].sum() - n1 * (n1 + 1) / 2) / max(1, n1 * n0)


def main():
    torch.manual_seed(0)
    acc = Accelerator(cpu=True)
    x = torch.randn(290_000, 64)
    y = (x[:, :4].sum(1) + torch.randn(290_000) > 0).float()
    net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256),
                              torch.nn.ReLU(), torch.nn.Linear(256, 1))
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    net, opt, dl = acc.prepare(net, opt, DataLoader(TensorDataset(x, y), batch_size=256, shuffle=True))
    seen_y, seen_p = [], []
    for step, (xb, yb) in enumerate(dl):
        out = net(xb)[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out, yb)
        opt.zero_grad()
        acc.backward(loss)
        opt.step()
        seen_y.append(acc.gather_for_metrics(yb).numpy())
        seen_p.append(acc.gather_for_metrics(out.detach()).numpy())
        score = auc(np.concatenate(seen_y), np.concatenate(seen_p))
        if step % 50 == 0:
            acc.print(step, float(loss), "auc so far", round(float(score), 4))


if __name__ == "__main__":
    main()
