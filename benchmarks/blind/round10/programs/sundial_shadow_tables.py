"""Shadow tables of sundials: every minute of a year for many sites, with two threads."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np

SITES = 500
DAYS = 365
MINUTES = 1440
STYLE = 0.35


def sun_constants():
    day = np.arange(DAYS)
    g = 2 * np.pi * (day + 0.5) / 365.25
    declination = np.radians(0.3963 - 22.9133 * np.cos(g) + 4.0254 * np.sin(g)
                             - 0.3872 * np.cos(2 * g) + 0.0520 * np.sin(2 * g))
    equation = 0.0172 + 0.4281 * np.cos(g) - 7.3515 * np.sin(g) - 3.3495 * np.cos(2 * g) \
        - 9.3619 * np.sin(2 * g)
    return declination, equation


def shadow_table(site, declination, equation):
    rng = np.random.default_rng(site)
    latitude = np.radians(rng.uniform(-60, 60))
    longitude = rng.uniform(-7.5, 7.5)
    facing = rng.uniform(-0.6, 0.6)
    minute = np.arange(MINUTES)
    lines = np.zeros(MINUTES)
    lit = 0
    longest = 0.0
    for first in range(0, DAYS, 30):
        dec = declination[first:first + 30, None]
        eot = equation[first:first + 30, None]
        hour = np.radians((minute[None, :] + eot + 4 * longitude - 720.0) / 4.0)
        turn = np.cos(hour)
        height = np.sin(latitude) * np.sin(dec) + np.cos(latitude) * np.cos(dec) * turn
        east = np.cos(dec) * np.sin(hour)
        north = np.cos(latitude) * np.sin(dec) - np.sin(latitude) * np.cos(dec) * turn
        azimuth = np.arctan2(east, north) - facing
        up = height > 0.05
        flat = np.sqrt(np.maximum(1 - height ** 2, 0.0))
        length = np.where(up, STYLE * flat / np.maximum(height, 0.05), 0.0)
        angle = np.arctan2(np.sin(azimuth) * length, STYLE + np.cos(azimuth) * length)
        lines += np.where(up, angle, 0.0).sum(axis=0)
        lit += int(np.count_nonzero(up))
        longest = max(longest, float(length.max()))
    return lit, longest, lines / DAYS


def main():
    declination, equation = sun_constants()
    with ThreadPoolExecutor(2) as pool:
        tables = list(pool.map(lambda s: shadow_table(s, declination, equation), range(SITES)))
    lit = np.array([t[0] for t in tables])
    lines = np.stack([t[2] for t in tables])
    print(f"{SITES} sundials, {DAYS * MINUTES} minutes each")
    print(f"lit for {lit.mean() / MINUTES:.2f} days of the year, longest shadow"
          f" {max(t[1] for t in tables):.3f} m")
    print(f"noon line {np.degrees(lines[:, 720]).mean():.4f} degrees")


if __name__ == "__main__":
    main()
