"""Grade cheeses from laboratory readings: choose the classifier's strength by cross-validation."""
import numpy as np
from sklearn.feature_selection import SelectKBest, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

CHEESES, READINGS, USEFUL, GRADES = 2800, 48, 9, 3


def readings():
    rng = np.random.default_rng(77)
    x = rng.normal(0, 1, (CHEESES, READINGS))
    mix = rng.normal(0, 0.35, (READINGS, READINGS))
    x = x + x @ mix * 0.3
    quality = sum(np.sin(1.3 * x[:, k]) if k % 2 else 0.8 * x[:, k] for k in range(USEFUL))
    quality += rng.normal(0, 0.6, CHEESES)
    grade = np.digitize(quality, np.quantile(quality, [1 / 3, 2 / 3]))
    for column in range(USEFUL, READINGS, 7):
        x[:, column] = np.exp(x[:, column])
    names = [f"{kind}_{i}" for i in range(READINGS // 4)
             for kind in ("acid", "salt", "fat", "moist")]
    return x, grade, names


def relevance(x, y):
    return mutual_info_classif(x, y, n_neighbors=5, random_state=0)


def main():
    x, grade, names = readings()
    x_train, x_test, y_train, y_test = train_test_split(
        x, grade, test_size=0.2, random_state=1, stratify=grade)
    steps = Pipeline([
        ("scale", StandardScaler()),
        ("select", SelectKBest(relevance, k=16)),
        ("model", LogisticRegression(max_iter=400)),
    ])
    folds = StratifiedKFold(4, shuffle=True, random_state=2)
    search = GridSearchCV(
        steps, {"model__C": [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]},
        cv=folds, scoring="balanced_accuracy")
    search.fit(x_train, y_train)

    table = zip(search.cv_results_["param_model__C"], search.cv_results_["mean_test_score"])
    for strength, score in table:
        print(f"C = {strength:<6} balanced accuracy {score:.3f}")
    best = search.best_estimator_
    guess = best.predict(x_test)
    kept = [name for name, on in zip(names, best.named_steps["select"].get_support()) if on]
    print(f"test: {balanced_accuracy_score(y_test, guess):.3f} with {len(kept)} readings")
    print("readings kept:", ", ".join(kept[:8]), "...")


if __name__ == "__main__":
    main()
