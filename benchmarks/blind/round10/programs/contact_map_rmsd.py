"""Scores of model structures against references by their residue contact maps."""
import multiprocessing as mp

import numpy as np

CHAINS = 54
MODELS = 34
CUTOFF = 8.0


def backbone(length, rng):
    steps = rng.standard_normal((length, 3))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    for k in range(1, length):
        steps[k] = 0.6 * steps[k - 1] + 0.8 * steps[k]
    xyz = 3.8 * np.cumsum(steps, axis=0)
    radius = 2.2 * length ** 0.38
    return xyz * radius / np.sqrt(((xyz - xyz.mean(axis=0)) ** 2).sum(axis=1).mean())


def squared_distances(xyz):
    total = np.zeros((len(xyz), len(xyz)))
    for axis in range(3):
        gap = xyz[:, None, axis] - xyz[None, :, axis]
        gap *= gap
        total += gap
    return total


def contact_score(reference, contacts, model):
    distances = squared_distances(model)
    found = distances < CUTOFF ** 2
    shared = np.count_nonzero(found & contacts)
    wanted = np.count_nonzero(contacts)
    drms = np.sqrt(np.square(np.sqrt(distances) - reference).mean())
    return shared / wanted, drms


def score_chain(task):
    number, length = task
    rng = np.random.default_rng(number)
    native = backbone(length, rng)
    squares = squared_distances(native)
    contacts = squares < CUTOFF ** 2
    reference = np.sqrt(squares)
    scores = []
    for model in range(MODELS):
        noise = (0.3 + 0.1 * model) * rng.standard_normal(native.shape)
        scores.append(contact_score(reference, contacts, native + noise))
    scores = np.array(scores)
    return number, length, scores[:, 0].mean(), scores[:, 1].mean()


def chain_lengths():
    rng = np.random.default_rng(31)
    return sorted(int(n) for n in rng.uniform(120, 1500, CHAINS))


def main():
    tasks = list(enumerate(chain_lengths()))
    with mp.get_context("fork").Pool(2) as pool:
        rows = pool.map(score_chain, tasks, chunksize=CHAINS // 2)
    share = np.array([row[2] for row in rows])
    drms = np.array([row[3] for row in rows])
    print(f"{CHAINS} chains of {rows[0][1]} to {rows[-1][1]} residues, {MODELS} models each")
    print(f"contacts recovered {share.mean():.4f}, best {share.max():.4f}")
    print(f"distance deviation {drms.mean():.4f} A")


if __name__ == "__main__":
    main()
