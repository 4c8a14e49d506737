"""
verdict: set
stack:
  classify(unknown, templates)
  smooth(template)
  np.convolve(padded[:, axis], window, mode="valid")
call: smooth(template)
loop: for gesture in gestures
why: the templates are smoothed again for each unknown gesture
"""
from pathlib import Path

import numpy as np


def load_folder(folder):
    items = {}
    for path in sorted(Path(folder).glob("*.csv")):
        items[path.stem] = np.loadtxt(path, delimiter=",")
    return items


def smooth(track, width=51):
    window = np.hanning(width)
    window /= window.sum()
    padded = np.pad(track, ((width // 2, width // 2), (0, 0)), mode="edge")
    axes = [np.convolve(padded[:, axis], window, mode="valid") for axis in range(track.shape[1])]
    result = np.stack(axes, axis=1)
    return (result - result.mean(axis=0)) / result.std()


def distance(a, b):
    D = np.full((len(a) + 1, len(b) + 1), np.inf)
    D[0, 0] = 0.0
    for i in range(len(a)):
        cost = np.linalg.norm(b - a[i], axis=1)
        for j in range(len(b)):
            D[i + 1, j + 1] = cost[j] + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return D[-1, -1]


def classify(gestures, library):
    labels = {}
    for gesture in gestures:
        prepared = smooth(gestures[gesture])
        scores = {}
        for label, template in library.items():
            scores[label] = distance(prepared, smooth(template))
        labels[gesture] = min(scores, key=scores.get)
    return labels


if __name__ == "__main__":
    templates = load_folder("templates")
    unknown = load_folder("recorded")
    print(classify(unknown, templates))
