"""Movements of tagged sharks: speed between fixes, and home ranges, from the tags' text export."""
import io

import numpy as np
import pandas as pd
from dateutil import parser

N_SHARKS = 18
FIXES = 5_200
EARTH_KM = 6371.0


def export_text(rng):
    """The download of the tag provider: dates day first, one line a fix."""
    lines = ["tag,when,lat,lon,depth,quality"]
    for shark in range(N_SHARKS):
        minutes = np.cumsum(rng.integers(20, 110, FIXES))
        when = (pd.Timestamp("2023-02-01") + pd.to_timedelta(minutes, unit="min")).strftime("%d/%m/%Y %H:%M")
        lat = -33.0 + np.cumsum(rng.normal(0, 0.012, FIXES)) * 0.3
        lon = 18.0 + np.cumsum(rng.normal(0, 0.012, FIXES)) * 0.3
        depth = rng.gamma(2.0, 25.0, FIXES)
        quality = rng.choice(list("ABCZ"), FIXES, p=[0.3, 0.4, 0.25, 0.05])
        lines += [f"S{shark:02d},{w},{a:.4f},{o:.4f},{d:.1f},{q}"
                  for w, a, o, d, q in zip(when, lat, lon, depth, quality)]
    return "\n".join(lines)


def read_fixes(text):
    fixes = pd.read_csv(io.StringIO(text))
    fixes["when"] = fixes["when"].apply(lambda s: parser.parse(s, dayfirst=True))
    return fixes.sort_values(["tag", "when"]).reset_index(drop=True)


def add_speed(fixes):
    """Speed in km/h from the fix before of the same shark."""
    speeds = []
    before = None
    for _, fix in fixes.iterrows():
        speed = np.nan
        if before is not None and before["tag"] == fix["tag"]:
            hours = (fix["when"] - before["when"]).total_seconds() / 3600.0
            a1, a2 = np.radians(before["lat"]), np.radians(fix["lat"])
            half = (np.sin((a2 - a1) / 2) ** 2
                    + np.cos(a1) * np.cos(a2) * np.sin(np.radians(fix["lon"] - before["lon"]) / 2) ** 2)
            speed = 2 * EARTH_KM * np.arcsin(np.sqrt(half)) / hours
        speeds.append(speed)
        before = fix
    return fixes.assign(speed=speeds)


def home_range(track, cells=110):
    """Area in km2 with half of the kernel density of the fixes."""
    lat = np.linspace(track["lat"].min() - 0.1, track["lat"].max() + 0.1, cells)
    lon = np.linspace(track["lon"].min() - 0.1, track["lon"].max() + 0.1, cells)
    width = 0.05
    row = np.exp(-0.5 * ((lat[:, None] - track["lat"].to_numpy()) / width) ** 2)
    col = np.exp(-0.5 * ((lon[:, None] - track["lon"].to_numpy()) / width) ** 2)
    density = np.sort((row @ col.T).ravel())[::-1]
    inside = np.searchsorted(np.cumsum(density), 0.5 * density.sum())
    cell = (lat[1] - lat[0]) * 111.0 * (lon[1] - lon[0]) * 111.0 * np.cos(np.radians(33.0))
    return inside * cell


def main():
    rng = np.random.default_rng(12)
    fixes = read_fixes(export_text(rng))
    fixes = fixes[fixes["quality"] != "Z"].reset_index(drop=True)
    fixes = add_speed(fixes)
    fixes["night"] = (fixes["when"].dt.hour < 6) | (fixes["when"].dt.hour > 19)
    areas = {tag: home_range(track) for tag, track in fixes.groupby("tag")}
    by_night = fixes.groupby("night")["speed"].median()
    print("fixes", len(fixes), "sharks", len(areas))
    print("median speed by day %.3f, by night %.3f km/h" % (by_night[False], by_night[True]))
    print("home range median %.0f km2" % np.median(list(areas.values())))


if __name__ == "__main__":
    main()
