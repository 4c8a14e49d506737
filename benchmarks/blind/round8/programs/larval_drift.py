"""Drift of oyster larvae in a tidal estuary.

Particles move with interpolated currents and turbulence; the settlement map
is a kernel density of the final places.
"""
import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import gaussian_kde

LARVAE = 700
STEPS = 150
DT = 900.0


def currents():
    rng = np.random.default_rng(8)
    t = np.arange(0.0, STEPS * DT + 3600.0, 3600.0)
    y = np.linspace(0.0, 12000.0, 61)
    x = np.linspace(0.0, 30000.0, 151)
    tide = 0.5 * np.sin(2 * np.pi * t / 44700.0)[:, None, None]
    shear = (1.0 - ((y - 6000.0) / 6500.0) ** 2)[None, :, None]
    u = tide * shear * np.ones(x.size)[None, None, :]
    v = 0.08 * np.cos(2 * np.pi * t / 44700.0)[:, None, None] * np.sin(x / 4000.0)[None, None, :]
    v = v * np.ones(y.size)[None, :, None]
    u = u + 0.03 * rng.normal(size=u.shape)
    v = v + 0.03 * rng.normal(size=v.shape)
    option = dict(bounds_error=False, fill_value=None)
    return (RegularGridInterpolator((t, y, x), u, **option),
            RegularGridInterpolator((t, y, x), v, **option))


def advance(places, now, flow_u, flow_v, rng):
    kick = rng.normal(0.0, np.sqrt(2 * 0.8 * DT), places.shape)
    moved = np.empty_like(places)
    for i, (y, x) in enumerate(places):
        point = [now, y, x]
        u = flow_u(point)[0]
        v = flow_v(point)[0]
        moved[i, 0] = y + v * DT
        moved[i, 1] = x + u * DT
    moved += kick
    moved[:, 0] = np.clip(moved[:, 0], 0.0, 12000.0)
    moved[:, 1] = np.clip(moved[:, 1], 0.0, 30000.0)
    return moved


def settlement(places):
    kde = gaussian_kde(places.T, bw_method=0.25)
    y, x = np.meshgrid(np.linspace(0, 12000, 100), np.linspace(0, 30000, 250), indexing="ij")
    density = kde(np.vstack([y.ravel(), x.ravel()])).reshape(y.shape)
    return density / density.sum()


def main():
    rng = np.random.default_rng(21)
    flow_u, flow_v = currents()
    places = np.column_stack([rng.uniform(4000, 8000, LARVAE), rng.uniform(9000, 12000, LARVAE)])
    track = [places]
    for step in range(STEPS):
        places = advance(places, step * DT, flow_u, flow_v, rng)
        track.append(places)
        if step % 50 == 49:
            print(f"hour {(step + 1) * DT / 3600:5.1f}: mean x {places[:, 1].mean():.0f} m, "
                  f"spread {places[:, 1].std():.0f} m")
    maps = [settlement(np.vstack(track[k - 8:k])) for k in (50, 75, 100, 125, 150)]
    overlap = np.minimum(maps[0], maps[-1]).sum()
    print(f"overlap of first and last settlement map {overlap:.3f}")


if __name__ == "__main__":
    main()
