"""Visits of tagged hummingbirds to feeders: bouts, night gaps and favourite feeders."""
import numpy as np
import polars as pl

BIRDS = 1900
READINGS = 3_000_000
FEEDERS = 60


def make_readings():
    rng = np.random.default_rng(58)
    activity = rng.gamma(1.5, 1.0, BIRDS)
    birds = rng.choice(BIRDS, READINGS, p=activity / activity.sum())
    seconds = np.sort(rng.integers(0, 90 * 86400, READINGS))
    home = rng.integers(0, FEEDERS, BIRDS)
    feeder = (home[birds] + rng.geometric(0.5, READINGS) - 1) % FEEDERS
    tags = pl.Series("tag", ["HB-%05d" % (k * 37 + 11) for k in range(BIRDS)])
    return pl.DataFrame({
        "tag": tags.gather(birds),
        "second": seconds,
        "feeder": feeder.astype(np.int16),
        "signal": rng.normal(-60, 6, READINGS).astype(np.float32),
    })


def summarise(tag, visits):
    """One bird: feeding bouts, longest gap, share of the favourite feeder."""
    second = visits["second"].to_numpy()
    feeder = visits["feeder"].to_numpy()
    gaps = np.diff(second)
    new_bout = np.concatenate([[True], (gaps > 600) | (np.diff(feeder) != 0)])
    bout = np.cumsum(new_bout) - 1
    length = np.bincount(bout)
    share = np.bincount(feeder, minlength=FEEDERS).max() / len(feeder)
    hours = np.bincount((second // 3600) % 24, minlength=24)
    return {
        "tag": tag,
        "visits": len(second),
        "bouts": len(length),
        "longest_gap_h": float(gaps.max()) / 3600 if len(gaps) else 0.0,
        "favourite": float(share),
        "peak_hour": int(hours.argmax()),
        "signal": float(visits["signal"].mean()),
    }


def all_birds(readings):
    summaries = []
    for tag in readings["tag"].unique().sort():
        visits = readings.filter(pl.col("tag") == tag)
        summaries.append(summarise(tag, visits))
    return pl.DataFrame(summaries).sort("tag")


def main():
    readings = make_readings()
    strong = readings.filter(pl.col("signal") > -75)
    print("readings:", readings.height, "kept:", strong.height)
    table = all_birds(strong)
    print("birds:", table.height)
    print("mean bouts per bird: %.1f" % table["bouts"].mean())
    print("mean share of the favourite feeder: %.3f" % table["favourite"].mean())
    print("longest gap: %.1f h" % table["longest_gap_h"].max())
    busiest = table.sort("visits", descending=True).row(0, named=True)
    print("busiest bird:", busiest["tag"], "with", busiest["visits"], "visits")


if __name__ == "__main__":
    main()
