"""Cure vanilla pods: moisture and aroma models, then a report for each fresh pod."""
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.model_selection import cross_val_score

PODS = 4500
TRAITS = 14
FRESH = 260


def harvest(rng, count):
    x = rng.normal(size=(count, TRAITS))
    moisture = 30 + 4 * np.tanh(x[:, 0] * x[:, 1]) + 2 * x[:, 2] + rng.normal(0, 0.6, count)
    aroma = 1.8 + 0.4 * np.sin(x[:, 3] + x[:, 4]) - 0.02 * moisture + rng.normal(0, 0.05, count)
    return x, moisture, aroma


def verdict(moisture, aroma):
    if moisture > 33.0:
        return "sweat again"
    if aroma < 1.0:
        return "blend"
    return "sell whole"


def main():
    rng = np.random.default_rng(37)
    x, moisture, aroma = harvest(rng, PODS)
    fresh, _, _ = harvest(rng, FRESH)
    wet = RandomForestRegressor(n_estimators=250, max_features=0.5, min_samples_leaf=2,
                                n_jobs=2, random_state=1)
    scent = ExtraTreesRegressor(n_estimators=250, max_features=0.7, min_samples_leaf=2,
                                n_jobs=2, random_state=2)
    score = cross_val_score(scent, x, aroma, cv=3)
    print(f"aroma model explains {score.mean():.3f}")
    wet.fit(x, moisture)
    scent.fit(x, aroma)
    counts = {}
    wettest = (-1, 0.0)
    for pod in range(FRESH):
        row = fresh[pod].reshape(1, -1)
        m = wet.predict(row)[0]
        a = scent.predict(row)[0]
        word = verdict(m, a)
        counts[word] = counts.get(word, 0) + 1
        if m > wettest[1]:
            wettest = (pod, m)
    for word in sorted(counts):
        print(f"{word}: {counts[word]}")
    print(f"wettest pod {wettest[0]} at {wettest[1]:.2f} %")


if __name__ == "__main__":
    main()
