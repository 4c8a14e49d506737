"""Likelihood of single ion channel recordings under a hidden Markov gating model."""
import numpy as np

RECORDINGS = 12_000
BATCH = 64
STATES = 16


def gating_model(rng):
    rates = rng.random((STATES, STATES)) * 0.02
    for k in range(STATES - 1):
        rates[k, k + 1] += 0.1
        rates[k + 1, k] += 0.08
    np.fill_diagonal(rates, 0)
    transition = rates / 4
    np.fill_diagonal(transition, 1 - transition.sum(axis=1))
    level = np.where(np.arange(STATES) % 4 == 0, 4.0, 0.3 * (np.arange(STATES) % 4)).astype(np.float32)
    return transition.astype(np.float32), level, np.full(STATES, 0.7, dtype=np.float32)


def record(rng):
    lengths = np.clip(rng.gamma(4.0, 330.0, RECORDINGS).astype(int), 60, None)
    traces = []
    for n in lengths:
        opened = np.cumsum(rng.random(n, dtype=np.float32) < 0.02) % 2
        traces.append((4.0 * opened + 0.7 * rng.standard_normal(n, dtype=np.float32)).astype(np.float32))
    return traces


def log_likelihood(traces, transition, level, noise):
    lengths = np.array([len(t) for t in traces])
    longest = lengths.max()
    current = np.zeros((longest, len(traces)), dtype=np.float32)
    for k, trace in enumerate(traces):
        current[:len(trace), k] = trace
    emission = np.exp(-0.5 * ((current[:, :, None] - level) / noise) ** 2) / noise + 1e-12
    alpha = np.full((len(traces), STATES), 1.0 / STATES, dtype=np.float32)
    total = np.zeros(len(traces))
    for t in range(longest):
        alpha = (alpha @ transition) * emission[t]
        scale = alpha.sum(axis=1)
        alpha /= scale[:, None]
        total += np.where(t < lengths, np.log(scale), 0.0)
    return total


def main():
    rng = np.random.default_rng(14)
    transition, level, noise = gating_model(rng)
    traces = record(rng)
    order = np.arange(RECORDINGS)
    scores = np.zeros(RECORDINGS)
    for start in range(0, RECORDINGS, BATCH):
        chosen = order[start:start + BATCH]
        scores[chosen] = log_likelihood([traces[k] for k in chosen], transition, level, noise)
    samples = sum(len(t) for t in traces)
    print("recordings", RECORDINGS, "samples", samples)
    print("log likelihood per sample %.6f" % (scores.sum() / samples))
    print("worst recording", int(np.argmin(scores)))


if __name__ == "__main__":
    main()
