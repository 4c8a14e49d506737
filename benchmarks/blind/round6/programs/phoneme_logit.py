"""Vowel recognition from acoustic measurements, evaluated by speaker-wise cross-validation."""
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import GroupKFold

warnings.filterwarnings("ignore")

N_TOKENS = 4000
N_SPEAKERS = 50
VOWELS = ("a", "e", "i", "o", "u")


def make_tokens(rng):
    vowel = rng.integers(0, len(VOWELS), N_TOKENS)
    speaker = rng.integers(0, N_SPEAKERS, N_TOKENS)
    tract = rng.normal(1.0, 0.08, N_SPEAKERS)[speaker]
    f1 = np.array([730.0, 530.0, 270.0, 570.0, 300.0])[vowel] * tract
    f2 = np.array([1090.0, 1840.0, 2290.0, 840.0, 870.0])[vowel] * tract
    f3 = np.array([2440.0, 2480.0, 3010.0, 2410.0, 2240.0])[vowel] * tract
    columns = []
    for formant, spread in ((f1, 60.0), (f2, 120.0), (f3, 180.0)):
        for _ in range(5):  # five positions in the vowel
            columns.append(formant + rng.normal(0.0, spread, N_TOKENS))
    columns.append(rng.gamma(4.0, 0.03, N_TOKENS))  # duration in seconds
    columns.append(rng.normal(150.0, 40.0, N_TOKENS) / tract)  # pitch in Hz
    for k in range(13):  # cepstral coefficients
        shift = np.sin(1.3 * vowel + 0.4 * k)
        columns.append(shift + rng.normal(0.0, 1.5, N_TOKENS))
    for k in range(20):  # band ratios between 0 and 1
        columns.append(1.0 / (1.0 + np.exp(-0.4 * np.cos(vowel + k) - rng.normal(size=N_TOKENS))))
    return np.column_stack(columns), vowel, speaker


def evaluate(x, y, speaker):
    predicted = np.empty_like(y)
    for number, (fit, held) in enumerate(GroupKFold(5).split(x, y, speaker)):
        model = LogisticRegression(solver="saga", max_iter=800, random_state=0)
        model.fit(x[fit], y[fit])
        predicted[held] = model.predict(x[held])
        score = accuracy_score(y[held], predicted[held])
        print(f"fold {number}: accuracy {score:.3f}", flush=True)
    return predicted


def main():
    rng = np.random.default_rng(1)
    x, y, speaker = make_tokens(rng)
    print(f"{len(x)} vowel tokens, {x.shape[1]} measurements, {N_SPEAKERS} speakers")
    predicted = evaluate(x, y, speaker)
    print(f"overall accuracy {accuracy_score(y, predicted):.3f}")
    matrix = confusion_matrix(y, predicted)
    for name, row in zip(VOWELS, matrix):
        print(name, " ".join(f"{count:4d}" for count in row))


if __name__ == "__main__":
    main()
