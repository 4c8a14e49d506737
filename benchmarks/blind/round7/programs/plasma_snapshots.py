"""Drift-wave turbulence at the edge of a tokamak (Hasegawa-Mima equation, pseudo-spectral)."""
import tempfile
from pathlib import Path

import h5py
import numpy as np
from scipy import fft

N = 256
STEPS = 800
DT = 0.003
DRIFT, VISCOSITY = 0.6, 4e-7
SNAPSHOT_EVERY = 10
REPORT_EVERY = 40

k = np.fft.fftfreq(N, 1.0 / N)
KX, KY = np.meshgrid(k, k[: N // 2 + 1].copy(), indexing="ij")
KY[:, -1] = N // 2
K2 = KX ** 2 + KY ** 2
KEEP = (np.abs(KX) < N / 3) & (KY < N / 3)
DAMP = np.exp(-VISCOSITY * K2 ** 2 * DT)


def bracket_rhs(q_hat):
    """Advection of the potential vorticity by the drift velocity, plus the drift term."""
    phi_hat = -q_hat / (1.0 + K2)
    phi_x, phi_y = fft.irfft2(1j * KX * phi_hat), fft.irfft2(1j * KY * phi_hat)
    q_x, q_y = fft.irfft2(1j * KX * q_hat), fft.irfft2(1j * KY * q_hat)
    return KEEP * fft.rfft2(phi_y * q_x - phi_x * q_y) - DRIFT * 1j * KY * phi_hat


def advance(q_hat):
    half = q_hat + 0.5 * DT * bracket_rhs(q_hat)
    return DAMP * (q_hat + DT * bracket_rhs(half))


def spectrum(q_hat):
    """Energy by wave number, in rings of the full plane."""
    phi = fft.irfft2(-q_hat / (1.0 + K2))
    full = np.abs(np.fft.fft2(phi)) ** 2 / N ** 4
    ring = np.rint(np.hypot(*np.meshgrid(k, k, indexing="ij")))
    energy = np.zeros(N // 3)
    for shell in range(N // 3):
        energy[shell] = (full * (ring == shell) * (1.0 + shell ** 2)).sum()
    return energy


def first_state(rng):
    phase = np.exp(2j * np.pi * rng.random(K2.shape))
    amplitude = N ** 2 * 0.02 * np.sqrt(K2) * np.exp(-((np.sqrt(K2) - 12.0) / 5.0) ** 2)
    field = fft.irfft2(KEEP * amplitude * phase)
    return fft.rfft2(field - field.mean())


def save(group, number, q_hat):
    phi_hat = -q_hat / (1.0 + K2)
    fields = {"q": q_hat, "phi": phi_hat, "vx": -1j * KY * phi_hat}
    for name, field_hat in fields.items():
        group.create_dataset(f"{number:05d}/{name}", data=fft.irfft2(field_hat),
                             compression="gzip", compression_opts=9)


def main():
    rng = np.random.default_rng(2)
    q_hat = first_state(rng)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        with h5py.File(Path(folder) / "run.h5", "w") as out:
            group = out.create_group("snapshots")
            for step in range(STEPS):
                q_hat = advance(q_hat)
                energy = spectrum(q_hat)
                if step % SNAPSHOT_EVERY == 0:
                    save(group, step, q_hat)
                if step % REPORT_EVERY == 0:
                    rows.append((step * DT, energy.sum(), energy.argmax()))
            count = len(group)
    print("snapshots", count)
    for time, total, peak in rows[:: len(rows) // 3]:
        print("t %.2f  energy %.5e  peak k %d" % (time, total, peak))


if __name__ == "__main__":
    main()
