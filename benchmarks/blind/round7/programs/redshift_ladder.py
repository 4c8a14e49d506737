"""Luminosity function of a galaxy survey from spectroscopic redshifts."""
import numpy as np
from scipy.integrate import quad

C_KMS = 299792.458
H0, OMEGA_M, W0, WA = 69.8, 0.31, -0.95, 0.12
N_GALAXIES = 200_000
M_LIMIT = 19.8
Z_MIN, Z_MAX = 0.02, 0.6


def hubble(z):
    a = 1.0 + z
    dark = a ** (3.0 * (1.0 + W0 + WA)) * np.exp(-3.0 * WA * z / a)
    return (OMEGA_M * a ** 3 + (1.0 - OMEGA_M) * dark) ** 0.5


def inverse_hubble(z):
    return 1.0 / hubble(z)


def comoving_distances(redshifts):
    """Comoving distance in Mpc of each galaxy."""
    out = np.empty(len(redshifts))
    for i, z in enumerate(redshifts):
        out[i] = C_KMS / H0 * quad(inverse_hubble, 0.0, z)[0]
    return out


def make_survey(rng):
    redshift = Z_MIN + (Z_MAX - Z_MIN) * rng.beta(2.2, 3.1, N_GALAXIES)
    apparent = M_LIMIT - rng.gamma(2.0, 0.6, N_GALAXIES)
    colour = rng.normal(0.7, 0.2, N_GALAXIES)
    return redshift, apparent, colour


def volume_weights(absolute, k_corr, ladder_z, ladder_d):
    """1/Vmax: the volume in which a galaxy would still be in the sample."""
    modulus = 5.0 * np.log10(ladder_d * (1.0 + ladder_z)) + 25.0 + 1.1 * ladder_z
    z_limit = np.interp(M_LIMIT - absolute - 0.1 * k_corr, modulus, ladder_z)
    d_limit = np.interp(np.clip(z_limit, Z_MIN, Z_MAX), ladder_z, ladder_d)
    near = ladder_d[0]
    return 1.0 / np.maximum(4.0 / 3.0 * np.pi * (d_limit ** 3 - near ** 3), 1e3)


def main():
    rng = np.random.default_rng(8)
    redshift, apparent, colour = make_survey(rng)
    distance = comoving_distances(redshift)
    k_corr = 1.1 * redshift + 0.1 * colour
    absolute = apparent - 5.0 * np.log10(distance * (1.0 + redshift)) - 25.0 - k_corr

    ladder_z = np.linspace(Z_MIN, Z_MAX, 400)
    ladder_d = comoving_distances(ladder_z)
    weight = volume_weights(absolute, k_corr, ladder_z, ladder_d)

    edges = np.linspace(-24.0, -16.0, 33)
    bin_index = np.digitize(absolute, edges)
    phi = np.bincount(bin_index, weights=weight, minlength=34)[1:33]
    samples = np.empty((2400, 32))
    for b in range(len(samples)):
        pick = rng.integers(0, N_GALAXIES, N_GALAXIES)
        samples[b] = np.bincount(bin_index[pick], weights=weight[pick], minlength=34)[1:33]
    error = samples.std(axis=0)
    peak = int(np.argmax(phi))
    print("galaxies", N_GALAXIES, "median distance %.1f Mpc" % np.median(distance))
    print("peak bin %.2f  log phi %.3f" % (edges[peak], np.log10(phi[peak])))
    print("mean relative error %.4f" % np.mean(error[phi > 0] / phi[phi > 0]))


if __name__ == "__main__":
    main()
