"""Apply the calibration history of anemometers to wind readings.

Each mast has its anemometer recalibrated now and then; a calibration is
valid from its start to its end.  The readings arrive in monthly batches and
are turned into wind speeds with the calibration valid at that time.
"""
import numpy as np
import pandas as pd

MASTS = 20
PERIODS = 60
BATCHES = 8
READINGS = 400_000
SPAN = 6_000_000        # seconds in one batch


def calibrations(rng):
    """Back-to-back validity periods with gain and offset for each mast."""
    rows = []
    last = BATCHES * SPAN
    for mast in range(MASTS):
        cuts = 1 + np.sort(rng.choice(last - 1, PERIODS - 1, replace=False))
        starts = np.concatenate([[0], cuts])
        ends = np.concatenate([cuts, [last]])
        rows.append(pd.DataFrame({
            "mast": mast, "start": starts, "end": ends,
            "gain": rng.normal(0.62, 0.01, PERIODS),
            "offset": rng.normal(0.21, 0.02, PERIODS)}))
    return pd.concat(rows, ignore_index=True)


def readings(rng, batch):
    """Pulse rates of all masts in one month, in the order of time."""
    time = np.sort(rng.integers(batch * SPAN, (batch + 1) * SPAN, READINGS))
    mast = rng.integers(0, MASTS, READINGS)
    gust = rng.weibull(2.0, READINGS) * (7.0 + 0.1 * mast)
    return pd.DataFrame({"mast": mast, "time": time, "pulses": gust / 0.62})


def calibrate(raw, history):
    """Readings with the wind speed from the calibration of their time."""
    both = raw.merge(history, on="mast")
    valid = both[(both["time"] >= both["start"]) & (both["time"] < both["end"])]
    speed = valid["pulses"] * valid["gain"] + valid["offset"]
    return valid[["mast", "time"]].assign(speed=speed)


def hourly(winds):
    """Mean and strongest wind for each mast and hour."""
    hour = winds["time"] // 3600
    return winds.groupby(["mast", hour])["speed"].agg(["mean", "max", "count"])


def main():
    rng = np.random.default_rng(9)
    history = calibrations(rng)
    means, peaks, count = [], [], 0
    for batch in range(BATCHES):
        raw = readings(rng, batch)
        winds = calibrate(raw, history)
        table = hourly(winds)
        means.append(table["mean"].mean())
        peaks.append(table["max"].max())
        count += int(table["count"].sum())
    print(f"calibrations: {len(history)}, readings used: {count}")
    print("monthly mean wind:", " ".join(f"{m:.4f}" for m in means))
    print(f"strongest wind: {max(peaks):.3f} m/s")


if __name__ == "__main__":
    main()
