"""Lick bouts of water-restricted mice, from the spout voltage of each trial."""
import numpy as np
import pandas as pd
from scipy.signal import butter, find_peaks, sosfiltfilt

TRIALS = 1_500
RATE = 1_000
SECONDS = 40
MICE = ["ada", "bol", "cyd", "dex", "eno"]

SOS = butter(3, [2.0, 40.0], btype="bandpass", fs=RATE, output="sos")


def spout_voltage(rng):
    n = RATE * SECONDS
    volts = 0.15 * rng.standard_normal(n)
    clock = rng.uniform(0.2, 1.0)
    while clock < SECONDS - 1:
        for _ in range(rng.integers(6, 24)):
            at = int(clock * RATE)
            volts[at : at + 35] += 1.0
            clock += rng.normal(0.14, 0.015)
            if clock > SECONDS - 1:
                break
        clock += rng.exponential(0.7)
    return volts


def detect(volts):
    clean = sosfiltfilt(SOS, volts)
    peaks, info = find_peaks(clean, height=0.3, distance=60, prominence=0.2)
    gaps = np.diff(peaks, prepend=-10_000) / RATE
    bout = np.cumsum(gaps > 0.4)
    return pd.DataFrame(
        {
            "at": peaks / RATE,
            "height": info["peak_heights"],
            "prominence": info["prominences"],
            "gap": gaps,
            "bout": bout,
            "first": gaps > 0.4,
        }
    )


def collect():
    rng = np.random.default_rng(41)
    events = None
    for trial in range(TRIALS):
        found = detect(spout_voltage(rng))
        found["mouse"] = MICE[trial % len(MICE)]
        found["trial"] = trial
        found["late"] = trial >= TRIALS // 2
        if events is None:
            events = found
        else:
            events = pd.concat([events, found], ignore_index=True)
    return events


def summary(events):
    bouts = events.groupby(["mouse", "late", "trial", "bout"]).agg(
        licks=("at", "size"), start=("at", "min"), stop=("at", "max")
    )
    bouts["length"] = bouts["stop"] - bouts["start"]
    bouts = bouts[bouts["licks"] >= 3]
    out = bouts.groupby(["mouse", "late"]).agg(
        bouts=("licks", "size"), licks=("licks", "mean"), length=("length", "median")
    )
    inside = events.loc[~events["first"]].groupby(["mouse", "late"])["gap"].median()
    out["rhythm"] = 1.0 / inside
    return out


def main():
    events = collect()
    print(f"{len(events)} licks in {TRIALS} trials")
    print(summary(events).round(3).to_string())


if __name__ == "__main__":
    main()
