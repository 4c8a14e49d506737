"""
verdict: set
stack:
  main("songs", parse().band)
  dtw_distance(clips[i], clips[j], band)
  chroma(b)
  librosa.feature.mfcc(y=y, sr=sr, n_mfcc=20, hop_length=128)
call: chroma(b)
loop: for i in range(n)
why: the features of each clip j are computed again for each i
"""
import argparse
from pathlib import Path

import librosa
import numpy as np
from scipy.spatial.distance import cdist


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--band", type=int, default=40)
    return parser.parse_args()


def chroma(signal):
    y, sr = signal
    m = librosa.feature.mfcc(y=y, sr=sr, n_mfcc=20, hop_length=128)
    return (m - m.mean(axis=1, keepdims=True)).T


def dtw_distance(a, b, width):
    fa, fb = chroma(a), chroma(b)
    cost = cdist(fa, fb)
    total = np.full((len(fa) + 1, len(fb) + 1), np.inf)
    total[0, 0] = 0.0
    for r in range(1, len(fa) + 1):
        mid = r * len(fb) // len(fa)
        for c in range(max(1, mid - width), min(len(fb), mid + width) + 1):
            best = min(total[r - 1, c], total[r, c - 1], total[r - 1, c - 1])
            total[r, c] = cost[r - 1, c - 1] + best
    return total[-1, -1] / (len(fa) + len(fb))


def main(folder, band):
    clips = [librosa.load(p, sr=22050) for p in sorted(Path(folder).glob("*.wav"))]
    n = len(clips)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            d[i, j] = d[j, i] = dtw_distance(clips[i], clips[j], band)
    np.save("dtw.npy", d)


if __name__ == "__main__":
    main("songs", parse().band)
