"""
verdict: set
stack:
  select("fmri.npz", np.geomspace(0.01, 1, 25))
  leave_out_score(series, alpha)
  partial_correlation(x, alpha)
  scatter(x - x.mean(axis=0))
  c.T @ c
call: scatter(x - x.mean(axis=0))
loop: for alpha in alphas
why: the scatter matrix of each subject does not depend on alpha, but is computed again for each alpha
"""
import numpy as np


def scatter(c):
    return c.T @ c / (len(c) - 1)


def partial_correlation(x, shrink):
    s = scatter(x - x.mean(axis=0))
    target = np.trace(s) / len(s) * np.eye(len(s))
    p = np.linalg.inv((1 - shrink) * s + shrink * target)
    d = np.sqrt(np.diag(p))
    return -p / np.outer(d, d)


def leave_out_score(subjects, alpha):
    total = None
    nets = []
    for x in subjects:
        net = partial_correlation(x, alpha)
        nets.append(net)
        total = net if total is None else total + net
    n = len(nets)
    others = [(total - net) / (n - 1) for net in nets]
    return np.mean([np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(nets, others)])


def select(path, alphas):
    archive = np.load(path)
    series = [archive[key] for key in sorted(archive.files)]
    scores = {}
    for alpha in alphas:
        scores[float(alpha)] = leave_out_score(series, alpha)
    return max(scores, key=scores.get), scores


if __name__ == "__main__":
    print(select("fmri.npz", np.geomspace(0.01, 1, 25))[0])
