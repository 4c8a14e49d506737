"""Reversible-jump sampler for change points in a well log."""
import jax
import jax.numpy as jnp
import numpy as np

N = 4000
rng = np.random.default_rng(5)
level = np.repeat(rng.normal(size=20), N // 20)
data = jnp.asarray(level + 0.3 * rng.normal(size=N))
t = jnp.arange(N)


@jax.jit
def loglik_(cuts, y, true_n):
    seg = jnp.sum(t[:, None] >= cuts[None, :], axis=1)
    n = cuts.shape[0] + 1
    count = jnp.zeros(n).at[seg].add(1.0)
    total = jnp.zeros(n).at[seg].add(y)
    mean = total / jnp.maximum(count, 1.0)
    return -0.5 * jnp.sum((y - mean[seg]) ** 2) / 0.09 - 2.0 * true_n


def loglik(cuts, y):
    pad = np.full(640, N, dtype=np.int64)
    pad[:len(cuts)] = cuts
    return loglik_(jnp.asarray(pad), y, len(cuts) + 1)


def main():
    cuts = np.sort(rng.choice(np.arange(1, N), 150, replace=False))
    cur = float(loglik(cuts, data))
    kept = 0
    for it in range(900):
        if rng.random() < 0.7:
            prop = np.sort(np.append(cuts, rng.integers(1, N)))
        else:
            prop = np.delete(cuts, rng.integers(len(cuts)))
        new = float(loglik(prop, data))
        if len(prop) < 500 and (it < 350 or np.log(rng.random()) < new - cur):
            cuts, cur = prop, new
            kept += 1
        if it % 100 == 0:
            print(it, len(cuts), round(cur, 1), kept, flush=True)


if __name__ == "__main__":
    main()
