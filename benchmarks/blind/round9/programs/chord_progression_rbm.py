"""A restricted Boltzmann machine of chord progressions, trained with persistent chains."""
import numpy as np

NOTES, BARS, HIDDEN, CHAINS = 12, 32, 384, 192
UPDATES, SWEEPS = 390, 10


def progressions(rng, count):
    scale = np.array([0, 2, 4, 5, 7, 9, 11])
    pieces = np.zeros((count, BARS, NOTES), np.float32)
    for index in range(count):
        key, degree = rng.integers(0, 12), 0
        for bar in range(BARS):
            for third in (0, 2, 4):
                pieces[index, bar, (key + scale[(degree + third) % 7]) % 12] = 1.0
            degree = (degree + rng.choice((3, 4, 1, 5))) % 7
    return pieces.reshape(count, -1)


def sigmoid(x):
    np.negative(x, out=x)
    np.exp(x, out=x)
    x += 1.0
    return np.reciprocal(x, out=x)


def main():
    rng = np.random.default_rng(52)
    pieces = progressions(rng, 2000)
    visible = pieces.shape[1]
    weights = rng.normal(0, 0.02, (visible, HIDDEN)).astype(np.float32)
    mean = pieces.mean(0).clip(0.01, 0.99)
    low = np.log(mean / (1 - mean)).astype(np.float32)
    high = np.zeros(HIDDEN, np.float32)
    dice = lambda shape: rng.random(shape, dtype=np.float32)
    chain = (dice((CHAINS, visible)) < mean).astype(np.float32)
    rate, gaps = 0.02, []
    for update in range(UPDATES):
        batch = pieces[rng.integers(0, len(pieces), CHAINS)]
        seen = sigmoid(batch @ weights + high)
        for _ in range(SWEEPS):
            hidden = sigmoid(chain @ weights + high)
            hidden = (dice(hidden.shape) < hidden).astype(np.float32)
            chance = sigmoid(hidden @ weights.T + low)
            chain = (dice(chance.shape) < chance).astype(np.float32)
        dreamt = sigmoid(chain @ weights + high)
        weights += rate / CHAINS * (batch.T @ seen - chain.T @ dreamt)
        low += rate * (batch.mean(0) - chain.mean(0))
        high += rate * (seen.mean(0) - dreamt.mean(0))
        gaps.append(np.abs(batch.mean(0) - chain.mean(0)).mean())
        if update % 130 == 129:
            print(f"update {update + 1}: gap of the note frequencies {np.mean(gaps[-130:]):.4f}")
    print("weights", weights.std().round(4))


if __name__ == "__main__":
    main()
