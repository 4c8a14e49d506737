"""Mixed-layer depth and heat content for each drifting float of a profile collection."""
import os
import tempfile

import numpy as np

FLOATS = 60
PROFILES = 6000
LEVELS = 500


def collect(path):
    """Stand-in for the download: all profiles of all floats in one compressed file."""
    rng = np.random.default_rng(314)
    depth = np.linspace(2.0, 1000.0, LEVELS)
    owner = np.sort(rng.integers(0, FLOATS, PROFILES))
    layer = rng.gamma(6.0, 12.0, PROFILES)[:, None]
    warm = rng.uniform(8.0, 26.0, PROFILES)[:, None]
    drop = 1.0 / (1.0 + np.exp(-(depth[None, :] - layer) / 12.0))
    temperature = warm - (warm - 5.0) * drop * (1 - np.exp(-depth / 400.0))
    salinity = 35.0 + 0.4 * drop
    temperature = np.round(temperature + rng.normal(0, 0.01, temperature.shape), 3)
    salinity = np.round(salinity + rng.normal(0, 0.005, salinity.shape), 3)
    np.savez_compressed(path, owner=owner, depth=depth, temperature=temperature, salinity=salinity)


def density(t, s):
    return (999.84 + 0.0679 * t - 0.0091 * t ** 2 + 1.0e-4 * t ** 3
            + s * (0.8245 - 0.0041 * t + 7.6e-5 * t ** 2))


def mixed_layer(depth, rho):
    excess = rho - rho[:, 4:5] - 0.03
    found = np.argmax(excess > 0, axis=1)
    return np.where(found > 0, depth[found], depth[-1])


def heat_content(depth, t):
    upper = depth <= 700.0
    layer = np.diff(depth[upper])
    middle = 0.5 * (t[:, upper][:, 1:] + t[:, upper][:, :-1])
    return 1026.0 * 3990.0 * (middle * layer).sum(axis=1) / 1e9


def main():
    path = os.path.join(tempfile.mkdtemp(prefix="floats_"), "profiles.npz")
    collect(path)

    data = np.load(path)
    rows = []
    for number in range(FLOATS):
        mine = data["owner"] == number
        t = data["temperature"][mine]
        s = data["salinity"][mine]
        layer = mixed_layer(data["depth"], density(t, s))
        heat = heat_content(data["depth"], t)
        rows.append((number, mine.sum(), np.median(layer), heat.mean(), np.corrcoef(layer, heat)[0, 1]))
    table = np.array(rows)
    print("floats: %d, profiles: %d" % (len(table), table[:, 1].sum()))
    print("median mixed layer: %.1f m" % np.median(table[:, 2]))
    print("heat content 0-700 m: %.3f GJ/m2" % table[:, 3].mean())
    print("float with the deepest layer:", int(table[table[:, 2].argmax(), 0]))


if __name__ == "__main__":
    main()
