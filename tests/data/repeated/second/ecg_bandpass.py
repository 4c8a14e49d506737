"""
verdict: same
stack:
  pipeline.run(record_dir)
  self.clean(signal_mv)
  self.design()
  signal.firwin(self.taps, [self.low, self.high], fs=self.fs, pass_zero=False, window=("kaiser", 9.5))
call: self.design()
loop: for path in sorted(folder.glob("*.npy"))
why: fs, taps, low and high are set only in __init__, so every recording gets the same coefficients
"""
from pathlib import Path

import numpy as np
from scipy import signal


class EcgPipeline:
    def __init__(self, fs=1000, low=0.5, high=40.0, taps=200001):
        self.fs = fs
        self.low = low
        self.high = high
        self.taps = taps

    def design(self):
        coeffs = signal.firwin(self.taps, [self.low, self.high], fs=self.fs, pass_zero=False, window=("kaiser", 9.5))
        return coeffs / np.abs(coeffs).sum()

    def clean(self, x):
        h = self.design()
        return signal.fftconvolve(x - np.median(x), h, mode="same")

    def run(self, folder):
        rates = {}
        for path in sorted(folder.glob("*.npy")):
            signal_mv = np.load(path)
            cleaned = self.clean(signal_mv)
            peaks, _ = signal.find_peaks(cleaned, height=0.4, distance=int(0.25 * self.fs))
            rr = np.diff(peaks) / self.fs
            rates[path.stem] = 60.0 / rr.mean() if len(rr) else float("nan")
        return rates


if __name__ == "__main__":
    record_dir = Path("data/ecg")
    pipeline = EcgPipeline()
    for name, bpm in pipeline.run(record_dir).items():
        print(f"{name}: {bpm:.1f} bpm")
