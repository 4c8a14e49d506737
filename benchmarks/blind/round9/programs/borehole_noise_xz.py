"""Mean noise spectrum of a borehole sensor from the xz archive that the data centre delivers."""
import lzma
import os
import tempfile

import numpy as np

RATE = 500
BLOCK = 4_000_000           # samples per archive stream
STREAMS = 60
WINDOW = 4096


def delivery(path):
    """Stand-in for the archive: sixty streams in one file, as one gets by joining daily files."""
    rng = np.random.default_rng(88)
    white = rng.normal(0, 6.0, BLOCK)
    slow = np.convolve(rng.normal(0, 3.0, BLOCK), np.ones(12) / 3, mode="same")
    samples = np.round(white + slow).astype("<i2").tobytes()
    packed = lzma.compress(samples, preset=0)
    with open(path, "wb") as f:
        for _ in range(STREAMS):
            f.write(packed)


def blocks(path):
    """Samples in pieces of 256 windows; the file is read once from begin to end."""
    size = 256 * WINDOW * 2
    with lzma.open(path) as f:
        while True:
            raw = f.read(size)
            if len(raw) < WINDOW * 2:
                return
            usable = len(raw) // (WINDOW * 2) * WINDOW * 2
            yield np.frombuffer(raw[:usable], dtype="<i2").reshape(-1, WINDOW)


def main():
    path = os.path.join(tempfile.mkdtemp(prefix="borehole_"), "sensor.i2.xz")
    delivery(path)
    taper = np.hanning(WINDOW).astype(np.float32)
    total = np.zeros(WINDOW // 2 + 1)
    windows, peak = 0, 0
    for block in blocks(path):
        spectrum = np.abs(np.fft.rfft(block * taper, axis=1)) ** 2
        total += spectrum.sum(axis=0)
        windows += len(block)
        peak = max(peak, int(np.abs(block).max()))
    level = 10 * np.log10(total / windows)
    frequency = np.fft.rfftfreq(WINDOW, 1 / RATE)
    print("windows:", windows, "peak:", peak)
    for low, high in ((1, 5), (5, 20), (20, 80), (80, 240)):
        band = (frequency >= low) & (frequency < high)
        print("%3d-%3d Hz: %.2f dB" % (low, high, level[band].mean()))


if __name__ == "__main__":
    main()
