"""Match historical spellings of place names: pair features in parallel, then logistic regression."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

WORKERS = 2
CHUNK = 8000
PAIRS = 320_000
SYLLABLES = ["al", "ber", "cha", "dor", "es", "fol", "gra", "hau", "in", "jus", "kel", "lin", "mar", "nor", "ost", "pen"]


def gazetteer(rng, size=4000):
    return ["".join(SYLLABLES[k] for k in rng.integers(0, len(SYLLABLES), rng.integers(3, 6))) for _ in range(size)]


def misspell(name, spot, how):
    spot %= len(name)
    if how == 0:
        return name[:spot] + name[spot + 1:]
    if how == 1:
        return name[:spot] + "h" + name[spot:]
    return name[:spot] + "y" + name[spot + 1:]


def make_pairs():
    rng = np.random.default_rng(61)
    names = gazetteer(rng)
    left = rng.integers(0, len(names), PAIRS).tolist()
    right = rng.integers(0, len(names), PAIRS).tolist()
    same = (rng.random(PAIRS) < 0.4).tolist()
    spots = rng.integers(0, 60, PAIRS).tolist()
    hows = rng.integers(0, 3, PAIRS).tolist()
    pairs = []
    for a, b, match, spot, how in zip(left, right, same, spots, hows):
        pairs.append((names[a], misspell(names[a] if match else names[b], spot, how)))
    return pairs, np.array(same)


def edit_distance(a, b):
    above = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        row = [i]
        for j, cb in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (ca != cb)))
        above = row
    return above[-1]


def dice(a, b):
    grams_a = {a[i:i + 2] for i in range(len(a) - 1)}
    grams_b = {b[i:i + 2] for i in range(len(b) - 1)}
    return 2 * len(grams_a & grams_b) / max(len(grams_a) + len(grams_b), 1)


def describe(pairs):
    rows = []
    for a, b in pairs:
        rows.append((edit_distance(a, b) / max(len(a), len(b)), dice(a, b), abs(len(a) - len(b)), a[0] == b[0]))
    return rows


def features(pairs):
    chunks = [pairs[i:i + CHUNK] for i in range(0, len(pairs), CHUNK)]
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        parts = list(pool.map(describe, chunks))
    return np.array([row for part in parts for row in part], dtype=np.float64)


def main():
    pairs, same = make_pairs()
    x = features(pairs)
    cut = int(0.8 * len(x))
    model = LogisticRegression(max_iter=200).fit(x[:cut], same[:cut])
    print(f"{len(pairs)} pairs, {int(same.sum())} matches")
    print(f"F1 on the last fifth {f1_score(same[cut:], model.predict(x[cut:])):.3f}")


if __name__ == "__main__":
    main()
