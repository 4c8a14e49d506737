"""
verdict: same
stack:
  main("night.npy")
  spectrum(segment)
  dpss(SEGMENT, nw, int(2 * nw) - 1)
call: dpss(SEGMENT, nw, int(2 * nw) - 1)
loop: for channel in recording | for start in range(0, len(channel) - SEGMENT, SEGMENT // 2)
why: the tapers depend on a constant length and the default bandwidth and are computed for each segment of each channel
"""
import numpy as np
from scipy.signal.windows import dpss

SEGMENT = 30 * 256
FS = 256.0


def spectrum(x, nw=4.0):
    tapers = dpss(SEGMENT, nw, int(2 * nw) - 1)
    parts = np.fft.rfft(tapers * (x - x.mean())[None, :], axis=1)
    return (np.abs(parts) ** 2).mean(axis=0) / FS


def band_power(psd, low, high):
    freq = np.fft.rfftfreq(SEGMENT, 1 / FS)
    return psd[(freq >= low) & (freq < high)].sum()


def main(path):
    recording = np.load(path, mmap_mode="r")
    ratios = []
    for channel in recording:
        row = []
        for start in range(0, len(channel) - SEGMENT, SEGMENT // 2):
            segment = np.asarray(channel[start : start + SEGMENT], dtype=float)
            psd = spectrum(segment)
            row.append(band_power(psd, 0.5, 4) / band_power(psd, 8, 12))
        ratios.append(row)
    np.save("delta_alpha.npy", np.array(ratios))


if __name__ == "__main__":
    main("night.npy")
