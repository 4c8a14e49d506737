"""Power curve and downtime from a SCADA export of wind turbines."""
import os
import tempfile
from datetime import datetime

import numpy as np
import pandas as pd

ROWS = 700_000
TURBINES = 12


def write_export(path):
    rng = np.random.default_rng(321)
    block = 50_000
    wind = rng.weibull(2.1, block) * 8
    power = np.clip(2000 / (1 + np.exp(-(wind - 8.5) / 1.3)) + rng.normal(0, 40, block), 0, 2050)
    tail = [f"T{i % TURBINES:02d} , {w:.2f} ,{p:.1f}, {d:.0f}\n"
            for i, (w, p, d) in enumerate(zip(wind, power, rng.uniform(0, 360, block)))]
    stamp = pd.date_range("2021-03-01", periods=ROWS // TURBINES + 1, freq="10min").strftime("%d.%m.%Y %H:%M").tolist()
    with open(path, "w") as f:
        f.write("stamp , turbine , wind , power , direction\n")
        for lo in range(0, ROWS, block):
            f.writelines(f"{stamp[(lo + i) // TURBINES]} , {t}" for i, t in enumerate(tail))


def read_export(path):
    d = pd.read_csv(path, sep=r"\s*,\s*", engine="python")
    d["stamp"] = d["stamp"].apply(lambda s: datetime.strptime(s, "%d.%m.%Y %H:%M"))
    return d


def bootstrap_curve(d, rounds=70):
    rng = np.random.default_rng(2)
    b = np.minimum((d["wind"].to_numpy() * 2).astype(int), 49)
    p = d["power"].to_numpy()
    curves = []
    for _ in range(rounds):
        pick = rng.integers(0, len(p), len(p))
        n = np.bincount(b[pick], minlength=50)
        curves.append(np.bincount(b[pick], p[pick], minlength=50) / np.maximum(n, 1))
    return np.array(curves)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "export.csv")
        write_export(path)
        d = read_export(path)
    monthly = d.groupby([d["stamp"].dt.to_period("M"), "turbine"], observed=True)["power"].mean().unstack()
    idle = ((d["wind"] > 6) & (d["power"] < 150)).mean()
    c = bootstrap_curve(d)
    print(f"{len(d)} rows, {monthly.shape[0]} months, idle share {idle:.5f}, mean power {d['power'].mean():.2f}")
    print(f"power at 9 m/s {c[:, 18].mean():.1f} +- {c[:, 18].std():.2f}")


if __name__ == "__main__":
    main()
