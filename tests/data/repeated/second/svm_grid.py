"""
verdict: set
stack:
  search(GRID, sorted(glob("texture/*.png")))
  evaluate(C, gamma, paths)
  texture(io.imread(p, as_gray=True))
  graycomatrix(levels, distances=[1, 2, 4, 8], angles=ANGLES, levels=64, symmetric=True, normed=True)
call: texture(io.imread(p, as_gray=True))
loop: for C, gamma in grid
why: the texture features of the same images are extracted again for each pair of hyperparameters
"""
from glob import glob
from itertools import product
from pathlib import Path

import numpy as np
from skimage import io
from skimage.feature import graycomatrix, graycoprops
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

GRID = list(product([0.1, 1, 10, 100], [1e-3, 1e-2, 1e-1]))
ANGLES = np.linspace(0, np.pi, 8, endpoint=False)
PROPS = ("contrast", "homogeneity", "energy", "correlation")


def texture(image):
    levels = np.clip(image * 64, 0, 63).astype(np.uint8)
    glcm = graycomatrix(levels, distances=[1, 2, 4, 8], angles=ANGLES, levels=64, symmetric=True, normed=True)
    return np.concatenate([graycoprops(glcm, prop).ravel() for prop in PROPS])


def evaluate(penalty, width, files):
    X = np.stack([texture(io.imread(p, as_gray=True)) for p in files])
    y = [Path(p).stem.split("_")[0] for p in files]
    return cross_val_score(SVC(C=penalty, gamma=width), X, y, cv=5).mean()


def search(grid, paths):
    scores = {}
    for C, gamma in grid:
        scores[C, gamma] = evaluate(C, gamma, paths)
    return max(scores, key=scores.get), scores


if __name__ == "__main__":
    best, scores = search(GRID, sorted(glob("texture/*.png")))
    print("best", best, scores[best])
