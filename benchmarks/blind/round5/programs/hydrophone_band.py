"""Level of a hydrophone recording in one narrow band.

The recording is one long channel that does not fit into memory; it comes
in pieces.  The band filter carries its state from piece to piece, so that
the result is the same as for the whole recording at once.
"""
import numpy as np
from scipy import signal

RATE = 96_000
PIECE = 4_800_000
PIECES = 110
BAND = (1180.0, 1320.0)


def piece(number, rng):
    """Sea noise with a tone that comes and goes."""
    sound = rng.standard_normal(PIECE, dtype=np.float32).astype(np.float64)
    if number % 9 in (2, 3, 4):
        k = np.arange(0, PIECE)
        tone = np.sin(2 * np.pi * 1250.0 / RATE * k)
        sound += (0.05 + 0.02 * (number % 5)) * tone
    return sound


class Band:
    """Narrow band filter with memory."""

    def __init__(self):
        self.sos = signal.butter(10, BAND, "bandpass", fs=RATE, output="sos")
        self.state = np.zeros((len(self.sos), 2))

    def __call__(self, sound):
        out, self.state = signal.sosfilt(self.sos, sound, zi=self.state)
        return out


def levels(sound):
    """Level in decibel for each second."""
    seconds = sound.reshape(-1, RATE)
    return 10 * np.log10(np.einsum("ij,ij->i", seconds, seconds) / RATE)


def main():
    rng = np.random.default_rng(1250)
    band = Band()
    parts = []
    for number in range(PIECES):
        parts.append(levels(band(piece(number, rng))))
    level = np.concatenate(parts)
    quiet = np.percentile(level, 20)
    loud = level > quiet + 3.0
    starts = np.flatnonzero(np.diff(loud.astype(int)) == 1)
    print(f"length: {PIECE * PIECES / RATE / 3600:.2f} h, seconds: {len(level)}")
    print(f"background: {quiet:.2f} dB, loudest {level.max():.2f} dB")
    print(f"tone heard in {loud.mean():.4f} of the time, {len(starts)} onsets")


if __name__ == "__main__":
    main()
