"""Builds one row of features for each patient from a table of clinic visits."""
import os
import tempfile

import numpy as np
import pandas as pd

PATIENTS = 24_000
VISITS = 420_000


def write_visits(path):
    rng = np.random.default_rng(1001)
    pd.DataFrame({
        "patient": rng.integers(0, PATIENTS, VISITS),
        "day": rng.integers(0, 3650, VISITS),
        "pressure": rng.normal(132, 17, VISITS).round(0),
        "weight": rng.normal(78, 14, VISITS).round(1),
        "ward": rng.choice(["a", "b", "c", "er"], VISITS, p=[0.4, 0.3, 0.2, 0.1]),
    }).to_parquet(path)


def summary(g):
    high = g["pressure"] > 150
    return pd.Series({
        "visits": len(g),
        "span": g["day"].iloc[-1] - g["day"].iloc[0],
        "pressure": g["pressure"].mean(),
        "high_share": high.mean(),
        "weight_change": g["weight"].iloc[-1] - g["weight"].iloc[0],
        "emergencies": (g["ward"] == "er").sum(),
    })


def features(visits):
    visits = visits.sort_values(["patient", "day"], kind="stable")
    return visits.groupby("patient")[["day", "pressure", "weight", "ward"]].apply(summary)


def risk_groups(f, k=6, rounds=60):
    z = ((f - f.mean()) / f.std()).to_numpy(float)
    rng = np.random.default_rng(5)
    centre = z[rng.choice(len(z), k, replace=False)]
    for _ in range(rounds):
        near = ((z[:, None, :] - centre[None]) ** 2).sum(-1).argmin(1)
        centre = np.stack([z[near == j].mean(0) if (near == j).any() else centre[j] for j in range(k)])
    return np.sort(np.bincount(near, minlength=k))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        p = os.path.join(tmp, "visits.parquet")
        write_visits(p)
        visits = pd.read_parquet(p)
    f = features(visits)
    print(f"{len(f)} patients")
    print(f.mean().round(4).to_string())
    print("group sizes", *risk_groups(f))


if __name__ == "__main__":
    main()
