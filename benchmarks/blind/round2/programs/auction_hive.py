"""Bid shading by region: fits a log-normal tail to clearing prices of ad auctions."""
import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

AUCTIONS = 1_300_000
REGIONS = 36


def write_log(path):
    rng = np.random.default_rng(4711)
    cols = {
        "region": rng.integers(0, REGIONS, AUCTIONS).astype(np.int16),
        "price": rng.lognormal(-1, 0.8, AUCTIONS).round(4),
        "bidder": rng.integers(0, 50_000, AUCTIONS),
        "slot": rng.integers(0, 2000, AUCTIONS).astype(np.int32),
        "floor": rng.uniform(0, 0.2, AUCTIONS).round(3),
        "latency": rng.gamma(2, 10, AUCTIONS).astype(np.float32),
    }
    cols["agent"] = pa.array([f"Agent/{i % 97} build {i % 1013}" for i in range(20000)]).take(
        pa.array(rng.integers(0, 20000, AUCTIONS)))
    pq.write_table(pa.table(cols), path, compression="zstd", row_group_size=200_000)


def tail_fit(price, rng, rounds=110):
    logp = np.log(price[price > np.quantile(price, 0.2)])
    mu = np.empty(rounds)
    sd = np.empty(rounds)
    for k in range(rounds):
        s = logp[rng.integers(0, len(logp), len(logp))]
        lo, hi = np.quantile(s, [0.25, 0.95])
        s = s[(s > lo) & (s < hi)]
        mu[k], sd[k] = s.mean(), s.std()
    return mu.mean(), sd.mean(), mu.std()


def main():
    rng = np.random.default_rng(1)
    rows = []
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "auctions.parquet")
        write_log(path)
        for region in range(REGIONS):
            log = pq.read_table(path)
            price = log.filter(pc.equal(log["region"], region))["price"].to_numpy()
            rows.append((len(price), *tail_fit(price, rng)))
    r = np.array(rows)
    print(f"{int(r[:, 0].sum())} auctions in {len(r)} regions")
    print(f"mean mu {r[:, 1].mean():.5f} mean sigma {r[:, 2].mean():.5f} mean error {r[:, 3].mean():.6f}")


if __name__ == "__main__":
    main()
