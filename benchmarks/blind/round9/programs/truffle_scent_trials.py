"""Search of the best classifier settings for truffle scents, two trials at a time."""
import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

SAMPLES, VOLATILES = 700, 180
TRIALS = [
    {"depth": depth, "share": share, "keep": keep}
    for depth in (4, 8, 16)
    for share in (0.2, 0.5)
    for keep in (40, 120)
]


def scents():
    rng = np.random.default_rng(33)
    species = rng.integers(0, 4, SAMPLES)
    typical = rng.gamma(1.0, 1.0, (4, VOLATILES))
    peaks = rng.gamma(2.0, typical[species] + 1.5)
    return np.log1p(peaks), species


def trial(setting):
    peaks, species = scents()
    model = make_pipeline(
        SelectKBest(f_classif, k=setting["keep"]),
        ExtraTreesClassifier(
            120, max_depth=setting["depth"], max_features=setting["share"], random_state=0
        ),
    )
    return float(cross_val_score(model, peaks, species, cv=3).mean())


def search(folder):
    waiting, running, scores = list(range(len(TRIALS))), {}, {}
    while waiting or running:
        while waiting and len(running) < 2:
            number = waiting.pop(0)
            target = folder / f"trial_{number}.json"
            command = [sys.executable, __file__, json.dumps(TRIALS[number]), str(target)]
            running[number] = (subprocess.Popen(command), target)
        time.sleep(2.0)
        for number, (process, target) in list(running.items()):
            if process.poll() is not None:
                scores[number] = json.loads(target.read_text())
                del running[number]
    return scores


def main():
    if len(sys.argv) == 3:
        Path(sys.argv[2]).write_text(json.dumps(trial(json.loads(sys.argv[1]))))
        return
    with tempfile.TemporaryDirectory() as name:
        scores = search(Path(name))
    best = max(sorted(scores), key=scores.get)
    for number in sorted(scores):
        print(TRIALS[number], round(scores[number], 3))
    print("best", TRIALS[best], round(scores[best], 3))


if __name__ == "__main__":
    main()
