"""Band energies of a hydrophone array, one row for each third-octave band.

Results of `band_energy` are kept on disk, so that a run which was cut off can
go on where it stopped.
"""
import os
import shutil
import tempfile

import numpy as np
from joblib import Memory
from scipy import signal

RATE = 8000.0
CHANNELS = 24
SAMPLES = 1_300_000

store = tempfile.mkdtemp(prefix="bands_", dir=os.environ.get("TMPDIR", "."))
memory = Memory(store, verbose=0)


def record_tape(seed=3):
    rng = np.random.default_rng(seed)
    tape = rng.standard_normal((CHANNELS, SAMPLES), dtype=np.float32)
    tone = np.sin(2 * np.pi * 440.0 / RATE * np.arange(SAMPLES, dtype=np.float32))
    tape += 0.05 * tone
    return tape


def third_octaves(low, high):
    centres = []
    f = low
    while f < high:
        centres.append(f)
        f *= 2.0 ** (1.0 / 6.0)
    return centres


@memory.cache
def band_energy(tape, centre, hydrophones):
    """RMS in the band around `centre`, averaged over a few hydrophones."""
    edge = 2.0 ** (1.0 / 6.0)
    sos = signal.butter(
        4, [centre / edge, centre * edge], btype="bandpass", fs=RATE, output="sos"
    )
    levels = []
    for h in hydrophones:
        out = signal.sosfilt(sos, tape[h])
        out = signal.sosfilt(sos, out[::-1])[::-1]
        levels.append(float(np.sqrt(np.mean(np.square(out)))))
    return float(np.mean(levels))


def main():
    tape = record_tape()
    print(f"tape: {tape.shape[0]} channels, {tape.nbytes / 1e6:.0f} MB")

    centres = third_octaves(60.0, 3000.0)
    picks = (2, 7, 12, 17, 22)
    profile = []
    for centre in centres:
        level = band_energy(tape, centre, picks)
        profile.append(20.0 * np.log10(level))

    profile = np.array(profile)
    loud = int(np.argmax(profile))
    print(f"{len(centres)} bands, loudest at {centres[loud]:.0f} Hz")
    for lo in range(0, len(profile), 9):
        print("  " + " ".join(f"{v:7.2f}" for v in profile[lo : lo + 9]))


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(store, ignore_errors=True)
