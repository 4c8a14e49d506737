"""Choose a kernel machine for embryo stages by cross-validation."""
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

EMBRYOS = 4200
TRAITS = 36
STAGES = 5


def incubate(rng):
    stage = rng.integers(0, STAGES, size=EMBRYOS)
    angle = stage * 1.1 + rng.normal(0, 0.35, EMBRYOS)
    x = rng.normal(size=(EMBRYOS, TRAITS))
    x[:, 0] += 2.2 * np.cos(angle)
    x[:, 1] += 2.2 * np.sin(angle)
    x[:, 2] += 0.5 * stage
    x *= rng.uniform(0.2, 30, size=TRAITS)
    return x, stage


def main():
    x, stage = incubate(np.random.default_rng(29))
    machine = make_pipeline(StandardScaler(), SVC(kernel="rbf", cache_size=400))
    grid = {"svc__C": [0.3, 1.0, 3.0, 10.0], "svc__gamma": [0.003, 0.01, 0.03, 0.1]}
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    search = GridSearchCV(machine, grid, cv=folds, n_jobs=2)
    search.fit(x, stage)
    results = search.cv_results_
    order = np.argsort(results["rank_test_score"])
    for k in order[:4]:
        p = results["params"][k]
        print(f"C {p['svc__C']:5.1f} gamma {p['svc__gamma']:.3f} right {results['mean_test_score'][k]:.4f}")
    vectors = search.best_estimator_[-1].n_support_.sum()
    print(f"best {search.best_score_:.4f} with {vectors} support vectors")


if __name__ == "__main__":
    main()
