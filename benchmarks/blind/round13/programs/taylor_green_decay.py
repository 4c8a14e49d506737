"""Decay of a Taylor-Green vortex: pseudo-spectral Navier-Stokes in a periodic box."""
import numpy as np
from scipy import fft

SIDE = 96
STEPS = 50
DT = 0.01
VISCOSITY = 1 / 400
WORKERS = 2


def wave_numbers():
    k = np.fft.fftfreq(SIDE, 1 / SIDE)
    kz = np.fft.rfftfreq(SIDE, 1 / SIDE)
    return k[:, None, None], k[None, :, None], kz[None, None, :]


KX, KY, KZ = wave_numbers()
K2 = KX ** 2 + KY ** 2 + KZ ** 2
INVERSE_K2 = 1.0 / np.where(K2 == 0, 1.0, K2)
KEEP = (np.abs(KX) < SIDE / 3) & (np.abs(KY) < SIDE / 3) & (KZ < SIDE / 3)


def to_space(hat):
    return fft.irfftn(hat, s=(SIDE, SIDE, SIDE), workers=WORKERS)


def to_waves(field):
    return fft.rfftn(field, workers=WORKERS)


def start():
    x = np.arange(SIDE) * 2 * np.pi / SIDE
    x, y, z = x[:, None, None], x[None, :, None], x[None, None, :]
    u = np.sin(x) * np.cos(y) * np.cos(z)
    v = -np.cos(x) * np.sin(y) * np.cos(z)
    return [to_waves(u), to_waves(v), to_waves(np.zeros_like(u))]


def curl(hat):
    u, v, w = hat
    return (1j * (KY * w - KZ * v), 1j * (KZ * u - KX * w), 1j * (KX * v - KY * u))


def tendency(hat):
    """Rotational form of the convection, projected on divergence-free fields."""
    u, v, w = (to_space(part) for part in hat)
    a, b, c = (to_space(part) for part in curl(hat))
    force = [to_waves(v * c - w * b), to_waves(w * a - u * c), to_waves(u * b - v * a)]
    for part in force:
        part *= KEEP
    pressure = (KX * force[0] + KY * force[1] + KZ * force[2]) * INVERSE_K2
    return [force[0] - KX * pressure, force[1] - KY * pressure, force[2] - KZ * pressure]


def advance(hat, decay):
    """Heun's step with exact viscosity."""
    first = tendency(hat)
    guess = [decay * (part + DT * slope) for part, slope in zip(hat, first)]
    second = tendency(guess)
    return [decay * (part + 0.5 * DT * slope) + 0.5 * DT * late
            for part, slope, late in zip(hat, first, second)]


def energy(hat):
    return 0.5 * sum(np.mean(to_space(part) ** 2) for part in hat)


def dissipation(hat):
    return VISCOSITY * sum(np.mean(to_space(part) ** 2) for part in curl(hat))


def main():
    hat = start()
    decay = np.exp(-VISCOSITY * K2 * DT)
    print("start: energy %.5f" % energy(hat))
    for step in range(1, STEPS + 1):
        hat = advance(hat, decay)
        if step % 10 == 0:
            print("t = %.2f: energy %.5f, dissipation %.6f" % (step * DT, energy(hat), dissipation(hat)))
    divergence = np.abs(KX * hat[0] + KY * hat[1] + KZ * hat[2]).max() / SIDE ** 3
    print("largest divergence: %.1e" % divergence)


if __name__ == "__main__":
    main()
