"""Find the region of origin of olive oil from fatty acid and sterol profiles."""
import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

REGIONS = ["Liguria", "Umbria", "Apulia", "Sicily"]
BOTTLES = 3000
MARKERS = 36


def make_profiles(seed=11):
    rng = np.random.default_rng(seed)
    region = rng.integers(0, len(REGIONS), BOTTLES)
    centre = 0.55 * rng.standard_normal((len(REGIONS), MARKERS))
    mixing = rng.standard_normal((MARKERS, MARKERS)) / np.sqrt(MARKERS)
    noise = rng.standard_normal((BOTTLES, MARKERS))
    profile = centre[region] + noise + 0.8 * noise @ mixing
    profile[:, :6] = np.abs(profile[:, :6]) ** 1.3
    return profile, region


def score_setting(profile, region, cost, gamma):
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = []
    for train, test in folds.split(profile, region):
        scaler = StandardScaler().fit(profile[train])
        model = SVC(C=cost, gamma=gamma, probability=True, cache_size=400,
                    random_state=0)
        model.fit(scaler.transform(profile[train]), region[train])
        guess = model.predict(scaler.transform(profile[test]))
        scores.append(accuracy_score(region[test], guess))
    return float(np.mean(scores))


def main():
    profile, region = make_profiles()
    results = {}
    for cost in (0.3, 1.0, 3.0, 10.0):
        for gamma in (0.008, 0.02):
            results[cost, gamma] = score_setting(profile, region, cost, gamma)
            print(f"C={cost:<5} gamma={gamma:<6} accuracy {results[cost, gamma]:.4f}")
    best = max(results, key=results.get)
    print("best setting", best)
    scaler = StandardScaler().fit(profile)
    final = SVC(C=best[0], gamma=best[1], cache_size=400)
    final.fit(scaler.transform(profile), region)
    for code, name in enumerate(REGIONS):
        print(f"{name:8s} support vectors {final.n_support_[code]}")


if __name__ == "__main__":
    main()
