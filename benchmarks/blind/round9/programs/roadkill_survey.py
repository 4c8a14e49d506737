"""Monthly roadkill counts per road section, species and observer; hot spots over a year."""
import numpy as np
import pandas as pd

SECTIONS, SPECIES, OBSERVERS = 260, 140, 110
MONTHS = 8


def records(month):
    rng = np.random.default_rng(600 + month)
    n = 30000
    section = (rng.beta(1.2, 3.0, n) * SECTIONS).astype(int)
    species = np.minimum(rng.geometric(0.06, n) - 1, SPECIES - 1)
    observer = rng.integers(0, OBSERVERS, n)
    frame = pd.DataFrame({
        "section": pd.Categorical.from_codes(section, ["K%03d" % i for i in range(SECTIONS)]),
        "species": pd.Categorical.from_codes(species, ["sp%03d" % i for i in range(SPECIES)]),
        "observer": pd.Categorical.from_codes(observer, ["obs%03d" % i for i in range(OBSERVERS)]),
        "animals": rng.poisson(1.3, n) + 1,
        "minutes": rng.gamma(2.0, 15.0, n),
    })
    return frame


def monthly_table(frame):
    grouped = frame.groupby(["section", "species", "observer"], observed=False)
    table = grouped.agg(animals=("animals", "sum"), minutes=("minutes", "sum"),
                        visits=("animals", "size"))
    table = table[table["visits"] > 0].reset_index()
    table["rate"] = table["animals"] / table["minutes"] * 60.0
    return table


def hot_spots(table, rng):
    """Sections whose rate exceeds that of 400 random relabellings."""
    codes = table["section"].astype(str).str.slice(1).astype(int).to_numpy()
    rate = np.log1p(table["rate"].to_numpy())
    size = np.maximum(np.bincount(codes, minlength=SECTIONS), 1)
    observed = np.bincount(codes, weights=rate, minlength=SECTIONS) / size
    beaten = np.zeros(SECTIONS)
    for _ in range(400):
        shuffled = rng.permutation(rate)
        beaten += observed > np.bincount(codes, weights=shuffled, minlength=SECTIONS) / size
    return np.flatnonzero(beaten >= 398)


def main():
    rng = np.random.default_rng(3)
    hits = np.zeros(SECTIONS, dtype=int)
    animals = 0
    for month in range(MONTHS):
        table = monthly_table(records(month))
        hits[hot_spots(table, rng)] += 1
        animals += int(table["animals"].sum())
        print("month %d: %d combinations" % (month + 1, len(table)))
    print("animals:", animals)
    print("sections that were hot at least once:", int((hits > 0).sum()))


if __name__ == "__main__":
    main()
