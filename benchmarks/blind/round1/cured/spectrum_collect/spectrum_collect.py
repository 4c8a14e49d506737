"""Collect peaks of a long spectrum recording."""
import numpy as np
from scipy.signal import find_peaks


def recording(block, n=4096):
    rng = np.random.default_rng(block)
    t = np.arange(n)
    return np.sin(t / 7.0) + 0.5 * np.sin(t / 3.1) + 0.2 * rng.normal(size=n)


def main():
    P, H = [], []
    
    widths = np.empty((0, 8))
    for block in range(6000):
        sig = recording(block)
        idx, props = find_peaks(sig, height=0.3, distance=5)
        P.append(idx + block * 4096)
        H.append(props['peak_heights'])
        if block % 500 == 0:
            print(block, sum(map(len, P)), H[-1].mean(), flush=True)
    places, heights = np.concatenate(P), np.concatenate(H)
    print("peaks:", len(places), "median height", np.median(heights))


if __name__ == "__main__":
    main()
