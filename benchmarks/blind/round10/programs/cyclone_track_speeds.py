"""Translation speed and passage density of tropical cyclones from a best-track file."""
import os
import tempfile

import numpy as np
import pandas as pd
from scipy import ndimage

STORMS = 3_600
FIXES = 34
EARTH = 6371.0


def write_tracks(path):
    rng = np.random.default_rng(1900)
    storm = np.repeat(np.arange(STORMS), FIXES)
    start = rng.integers(0, 60 * 365 * 1440, STORMS)
    minutes = np.repeat(start, FIXES) + np.tile(np.arange(FIXES) * 360, STORMS)
    minutes += rng.integers(0, 200, minutes.size)
    lat = np.repeat(rng.uniform(8, 18, STORMS), FIXES)
    lon = np.repeat(rng.uniform(-60, -20, STORMS), FIXES)
    step = np.tile(np.arange(FIXES), STORMS)
    lat += 0.45 * step + 0.2 * rng.standard_normal(step.size)
    lon += -1.1 * step + 0.012 * step ** 2 + 0.2 * rng.standard_normal(step.size)
    time = pd.Timestamp("1950-01-01") + pd.to_timedelta(minutes, unit="min")
    frame = pd.DataFrame({"storm": storm, "time": time.strftime("%d %b %Y %H:%M"),
                          "lat": lat.round(2), "lon": lon.round(2)})
    frame.sample(frac=1.0, random_state=7).to_csv(path, index=False)


def haversine(lat1, lon1, lat2, lon2):
    lat1, lon1, lat2, lon2 = (np.radians(v) for v in (lat1, lon1, lat2, lon2))
    h = (np.sin((lat2 - lat1) / 2) ** 2
         + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2)
    return 2 * EARTH * np.arcsin(np.sqrt(h))


def track_speed(track):
    track = track.sort_values("time")
    hours = track["time"].diff().dt.total_seconds() / 3600.0
    last = track.shift(1)
    km = haversine(last["lat"], last["lon"], track["lat"], track["lon"])
    return (km / hours).max()


def density(frame, rounds=160):
    rng = np.random.default_rng(11)
    lat, lon = frame["lat"].to_numpy(), frame["lon"].to_numpy()
    fields = np.empty((rounds, 100, 160), dtype=np.float32)
    for k in range(rounds):
        pick = rng.integers(0, lat.size, lat.size)
        grid, _, _ = np.histogram2d(lat[pick], lon[pick], bins=(100, 160),
                                    range=((0, 50), (-100, -20)))
        fields[k] = ndimage.gaussian_filter(grid, 2.0)
    return fields.mean(axis=0), fields.std(axis=0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "best_tracks.csv")
        write_tracks(path)
        frame = pd.read_csv(path)
    frame["time"] = pd.to_datetime(frame["time"], format="mixed")
    speed = frame.groupby("storm")[["time", "lat", "lon"]].apply(track_speed)
    mean, spread = density(frame)
    print(f"{len(frame)} fixes of {len(speed)} storms")
    print(f"fastest translation, median {speed.median():.2f} km/h")
    print(f"densest cell {mean.max():.2f} +- {spread.flat[mean.argmax()]:.2f}")


if __name__ == "__main__":
    main()
