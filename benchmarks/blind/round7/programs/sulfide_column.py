"""Oxygen, sulfide and iron in the water of a deep basin through two years (implicit time steps)."""
import numpy as np
from scipy.linalg import solve_banded

LAYERS = 2_400
SPECIES = 3                # oxygen, sulfide, dissolved iron
STEPS = 18_000
DT = 1.0 / 24.0            # days
DZ = 0.1                   # metres
K_SULFIDE, K_IRON, K_PYRITE = 0.8, 2.5, 0.05


def mixing(step):
    """Turbulent diffusivity between layers; the pycnocline breaks down in winter."""
    season = 0.5 + 0.5 * np.cos(2 * np.pi * step * DT / 365.0)
    depth = np.arange(1, LAYERS) * DZ
    clear = 0.4 * np.exp(-depth / 30.0) * (0.2 + season) + 0.01
    return clear - 0.3 * clear * np.exp(-((depth - 70.0) / 8.0) ** 2)


def diffusion_bands(kappa):
    """Bands of the transport operator for one species, in the interleaved order."""
    bands = np.zeros((2 * SPECIES + 1, SPECIES * LAYERS))
    flux = np.repeat(kappa / DZ ** 2, SPECIES)
    bands[0, SPECIES:] = flux
    bands[2 * SPECIES, :-SPECIES] = flux
    bands[SPECIES, :-SPECIES] -= flux
    bands[SPECIES, SPECIES:] -= flux
    return bands


def apply_bands(bands, c):
    out = bands[SPECIES] * c
    out[:-SPECIES] += bands[0, SPECIES:] * c[SPECIES:]
    out[SPECIES:] += bands[2 * SPECIES, :-SPECIES] * c[:-SPECIES]
    return out


def reactions(c, rates, slopes):
    """Rates of change by reaction, and their derivatives by each species of the same layer."""
    oxygen, sulfide, iron = c[0::3], c[1::3], c[2::3]
    r1 = K_SULFIDE * oxygen * sulfide
    r2 = K_IRON * oxygen * iron
    r3 = K_PYRITE * sulfide * iron
    rates[0::3] = -2.0 * r1 - 0.25 * r2
    rates[1::3] = -r1 - 2.0 * r3
    rates[2::3] = -r2 - r3
    slopes[0, 0] = -2.0 * K_SULFIDE * sulfide - 0.25 * K_IRON * iron
    slopes[0, 1] = -2.0 * K_SULFIDE * oxygen
    slopes[0, 2] = -0.25 * K_IRON * oxygen
    slopes[1, 0] = -K_SULFIDE * sulfide
    slopes[1, 1] = -K_SULFIDE * oxygen - 2.0 * K_PYRITE * iron
    slopes[1, 2] = -2.0 * K_PYRITE * sulfide
    slopes[2, 0] = -K_IRON * iron
    slopes[2, 1] = -K_PYRITE * iron
    slopes[2, 2] = -K_IRON * oxygen - K_PYRITE * sulfide


def main():
    size = SPECIES * LAYERS
    c = np.zeros(size)
    depth = np.arange(LAYERS) * DZ
    c[0::3] = 0.28 * np.exp(-(depth / 80.0) ** 2)
    c[1::3] = 0.12 * (1 - np.exp(-(depth / 120.0) ** 2))
    rates, slopes = np.zeros(size), np.zeros((SPECIES, SPECIES, LAYERS))
    source = np.zeros(size)
    source[1::3][-200:] = 2e-4
    source[2::3][-200:] = 5e-5
    interface = []
    for step in range(STEPS):
        if step % 120 == 0:
            transport = diffusion_bands(mixing(step))
        reactions(c, rates, slopes)
        rhs = apply_bands(transport, c) + rates + source
        matrix = -DT * transport
        matrix[SPECIES] += 1.0
        for s in range(SPECIES):
            for t in range(SPECIES):
                matrix[SPECIES + s - t, t::3] -= DT * slopes[s, t]
        c += solve_banded((SPECIES, SPECIES), matrix, DT * rhs, overwrite_ab=True, check_finite=False)
        c[0] += DT * 0.8 * (0.28 - c[0])
        if step % 480 == 0:
            interface.append(depth[np.argmax(c[1::3] > c[0::3])])
    print("steps", STEPS, "days %.0f" % (STEPS * DT))
    print("interface between %.1f and %.1f m" % (min(interface), max(interface)))
    print("sulfide at the bottom %.4f" % c[1::3][-1])


if __name__ == "__main__":
    main()
