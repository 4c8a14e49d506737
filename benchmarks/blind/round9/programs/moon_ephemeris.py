"""Ecliptic longitude and distance of the moon from a long trigonometric series."""
import numpy as np

TERMS = 320
EPOCHS = 240000
BLOCK = 20000
REAL = np.longdouble


def series(rng):
    """Amplitudes (arcsec, km) and integer multipliers of the four Delaunay arguments."""
    multipliers = rng.integers(-4, 5, (TERMS, 4))
    multipliers[:4] = np.eye(4, dtype=int)
    strength = 22640.0 / (1.0 + np.arange(TERMS)) ** 1.6
    sine = strength * rng.choice([-1.0, 1.0], TERMS)
    cosine = 0.92 * strength * rng.choice([-1.0, 1.0], TERMS)
    return multipliers.astype(REAL), sine.astype(REAL), cosine.astype(REAL)


def arguments(t):
    """Delaunay arguments in radians for Julian centuries t."""
    degree = REAL(np.pi) / REAL(180)
    return np.stack([
        (297.8501921 + 445267.1114034 * t - 0.0018819 * t * t) * degree,
        (357.5291092 + 35999.0502909 * t - 0.0001536 * t * t) * degree,
        (134.9633964 + 477198.8675055 * t + 0.0087414 * t * t) * degree,
        (93.2720950 + 483202.0175233 * t - 0.0036539 * t * t) * degree,
    ])


def positions(t, multipliers, sine, cosine):
    base = arguments(t)
    longitude = np.zeros_like(t)
    distance = np.zeros_like(t)
    for k in range(TERMS):
        phase = multipliers[k, 0] * base[0]
        for column in range(1, 4):
            if multipliers[k, column]:
                phase = phase + multipliers[k, column] * base[column]
        longitude += sine[k] * np.sin(phase)
        distance += cosine[k] * np.cos(phase)
    mean = 218.3164477 + 481267.88123421 * t
    return np.mod(mean + longitude / 3600.0, 360.0), 385000.56 + distance


def main():
    multipliers, sine, cosine = series(np.random.default_rng(1738))
    hours = np.arange(EPOCHS).astype(REAL)
    t = hours / (24 * REAL(36525))
    longitude = np.empty(EPOCHS)
    distance = np.empty(EPOCHS)
    for start in range(0, EPOCHS, BLOCK):
        part = slice(start, start + BLOCK)
        longitude[part], distance[part] = positions(t[part], multipliers, sine, cosine)

    turns = int((np.diff(longitude) < -180).sum())
    closest = int(distance.argmin())
    print("epochs:", EPOCHS, "revolutions:", turns)
    print("closest: %.1f km at hour %d" % (distance[closest], closest))
    print("mean distance: %.2f km" % distance.mean())
    print("last longitude: %.5f deg" % longitude[-1])


if __name__ == "__main__":
    main()
