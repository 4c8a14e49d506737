# Coherence between pairs of seismic traces
import numpy as np

N_SAMPLES = 262_139   # samples per trace as delivered
PAIRS = 150


def trace(i):
    rng = np.random.default_rng(i)
    return rng.standard_normal(N_SAMPLES)


def coherence(a, b):
    fa, fb = np.fft.rfft(a), np.fft.rfft(b)
    cross = fa * np.conj(fb)
    corr = np.fft.irfft(cross / (np.abs(cross) + 1e-12), n=len(a))
    return int(np.argmax(np.abs(corr))), float(np.abs(corr).max())


best = []
for p in range(PAIRS):
    lag, c = coherence(trace(p), trace(p + 1))
    best.append(c)
    if p % 25 == 0:
        print(p, lag, round(c, 5), flush=True)
print("mean coherence", np.mean(best))
