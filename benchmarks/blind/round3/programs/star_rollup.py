"""Light curves of a sky survey: match, clean and roll up with pandas."""
import numpy as np
import pandas as pd

NIGHTS = 14
STARS = 5_000
PER_NIGHT = 300_000


def night(number, rng):
    when = np.sort(rng.uniform(number, number + 0.4, PER_NIGHT))
    star = rng.integers(0, STARS, PER_NIGHT)
    mean = 12.0 + (star % 700) / 100.0
    change = 0.3 * np.sin(2 * np.pi * when / (0.05 + (star % 97) / 100.0))
    seen = pd.DataFrame(
        {
            "when": when,
            "star": star,
            "mag": mean + change + rng.normal(0, 0.03, PER_NIGHT),
            "seeing": rng.gamma(6.0, 0.2, PER_NIGHT),
            "ccd": rng.integers(0, 16, PER_NIGHT),
        }
    )
    weather = pd.DataFrame(
        {
            "when": np.linspace(number - 0.01, number + 0.42, 4_000),
            "extinction": np.abs(rng.normal(0.12, 0.02, 4_000)),
        }
    )
    return seen, weather


def clean(seen, weather):
    seen = pd.merge_asof(seen, weather, on="when")
    seen["mag"] = seen["mag"] - seen["extinction"]
    zero = seen.groupby("ccd")["mag"].transform("median")
    seen["mag"] = seen["mag"] - (zero - zero.mean())
    seen = seen[seen["seeing"] < 2.2].sort_values(["star", "when"], ignore_index=True)
    local = (
        seen.groupby("star")["mag"].rolling(7, center=True, min_periods=3).median()
        .reset_index(level=0, drop=True)
    )
    seen["offset"] = (seen["mag"] - local).abs()
    return seen[seen["offset"] < 0.6]


def roll_up(curves):
    curves = curves.sort_values(["star", "when"], ignore_index=True)
    by_star = curves.groupby("star")
    curves["step"] = by_star["mag"].diff().abs()
    curves["rank"] = by_star["mag"].rank(pct=True)
    out = by_star.agg(
        n=("mag", "size"), mean=("mag", "mean"), spread=("mag", "std"),
        faint=("mag", "max"), bright=("mag", "min"),
    )
    out["step"] = curves.groupby("star")["step"].median()
    high = curves[curves["rank"] > 0.9].groupby("star")["mag"].mean()
    out["skew"] = (high - out["mean"]) / out["spread"]
    out["variable"] = out["spread"] > out["spread"].quantile(0.95)
    return out


def main():
    rng = np.random.default_rng(67)
    parts = []
    for number in range(NIGHTS):
        seen, weather = night(number, rng)
        parts.append(clean(seen, weather))
    curves = pd.concat(parts, ignore_index=True)
    print(f"{len(curves)} clean measurements of {curves['star'].nunique()} stars")

    stars = roll_up(curves)
    top = stars[stars["variable"]].sort_values("skew", ascending=False).head(8)
    for star, row in top.iterrows():
        print(
            f"star {star:5d}  n {int(row['n']):5d}  spread {row['spread']:.3f}  "
            f"step {row['step']:.3f}  skew {row['skew']:.2f}"
        )
    print(f"mean spread {stars['spread'].mean():.4f}")


if __name__ == "__main__":
    main()
