"""Fleece weights from the shearing books of hill farms: trends and bootstrap intervals."""
import os
import tempfile

import numpy as np
import pandas as pd

RETURNS = 150_000
FARMS = 45
BOOTSTRAPS = 260
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def write_books(path):
    """Transcribed shearing books; the weigher left a dash where the scale was broken."""
    rng = np.random.default_rng(1887)
    year = rng.integers(1887, 1936, RETURNS)
    month = rng.integers(5, 9, RETURNS)
    day = rng.integers(1, 29, RETURNS)
    minute = rng.integers(5 * 60, 21 * 60, RETURNS)
    farm = rng.integers(0, FARMS, RETURNS)
    kg = 1.9 + 0.008 * (year - 1887) + 0.01 * farm + rng.normal(0, 0.35, RETURNS)
    broken = rng.random(RETURNS) < 0.03
    with open(path, "w") as file:
        file.write("farm,sheared,kg\n")
        for f, y, m, d, t, w, b in zip(farm.tolist(), year.tolist(), month.tolist(), day.tolist(),
                                       minute.tolist(), kg.tolist(), broken.tolist()):
            weight = "-" if b else "%.2f" % w
            file.write("F%02d,%d %s %d %02d:%02d,%s\n" % (f, d, MONTHS[m - 1], y, t // 60, t % 60, weight))


def read_books(path):
    books = pd.read_csv(path)
    books["sheared"] = pd.to_datetime(books["sheared"], format="mixed", dayfirst=True)
    books = books[books["kg"] != "-"].copy()
    books["year"] = books["sheared"].dt.year
    books["hour"] = books["sheared"].dt.hour
    return books


def interval(rng, weights):
    """Bootstrap interval of the mean and of the coefficient of variation."""
    means, variations = [], []
    for _ in range(BOOTSTRAPS):
        draw = weights[rng.integers(0, len(weights), len(weights))]
        mean = draw.sum() / len(draw)
        spread = (((draw - mean) ** 2).sum() / len(draw)) ** 0.5
        means.append(mean)
        variations.append(spread / mean)
    return np.percentile(means, [2.5, 97.5]), np.percentile(variations, [2.5, 97.5])


def main():
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shearing.csv")
        write_books(path)
        books = read_books(path)
    weights = np.array([float(text) for text in books["kg"]], dtype=object)
    books["weight"] = weights
    print("returns with a weight:", len(books))
    mean, variation = interval(rng, weights)
    print("mean fleece: %.3f - %.3f kg" % tuple(mean))
    print("variation: %.4f - %.4f" % tuple(variation))
    yearly = books.groupby("year")["weight"].sum() / books.groupby("year").size()
    slope = np.polyfit(yearly.index.to_numpy(float), yearly.to_numpy(float), 1)[0]
    print("gain per decade: %.3f kg" % (10 * slope))
    print("busiest hour:", int(books["hour"].value_counts().sort_index().idxmax()))


if __name__ == "__main__":
    main()
