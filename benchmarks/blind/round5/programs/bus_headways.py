"""Predict the time until the next bus from the arrivals seen so far on the day.

One line on one day is one training example: all its arrivals, in order.
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax

FEATURES, WIDTH = 10, 96
DAYS, EPOCHS = 44, 12


def day_log(rng):
    """Arrivals of one line on one day: features, next headway, weight of each arrival."""
    n = int(rng.integers(60, 420))
    hour = np.sort(rng.uniform(5, 24, n))
    rush = np.exp(-(hour - 8) ** 2) + np.exp(-(hour - 17.5) ** 2)
    rain = rng.random()
    headway = 10 - 5 * rush + 3 * rain + rng.gamma(2.0, 0.6, n)
    last = np.concatenate([[8.0], headway[:-1]])
    x = np.stack([hour / 24, np.sin(hour / 24 * 6.28), np.cos(hour / 24 * 6.28), rush,
                  np.full(n, rain), last / 10, rng.normal(0, 1, n), rng.normal(0, 1, n),
                  np.arange(n) / 100, np.ones(n)], 1)
    weight = (rng.random(n) > 0.05).astype(np.float32)
    return x.astype(np.float32), (headway / 10).astype(np.float32), weight


def start(key):
    sizes = [(2 * FEATURES, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)]
    keys = jax.random.split(key, len(sizes))
    return [{"w": jax.random.normal(k, s) * (2.0 / s[0]) ** 0.5, "b": jnp.zeros(s[1])}
            for k, s in zip(keys, sizes)]


def predict(layers, x):
    seen = jnp.cumsum(x, 0) / jnp.arange(1, x.shape[0] + 1)[:, None]
    h = jnp.concatenate([x, seen], 1)
    for layer in layers[:-1]:
        h = jax.nn.gelu(h @ layer["w"] + layer["b"])
    return (h @ layers[-1]["w"] + layers[-1]["b"])[:, 0]


def loss_of(layers, x, y, weight):
    error = (predict(layers, x) - y) ** 2
    return (error * weight).sum() / weight.sum()


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3))


@jax.jit
def step(layers, state, x, y, weight):
    loss, grads = jax.value_and_grad(loss_of)(layers, x, y, weight)
    updates, state = optimizer.update(grads, state, layers)
    return optax.apply_updates(layers, updates), state, loss


def main():
    rng = np.random.default_rng(7)
    days = [day_log(rng) for _ in range(DAYS)]
    print(f"{DAYS} days, {int(sum(w.sum() for _, _, w in days))} arrivals used")
    layers = start(jax.random.PRNGKey(0))
    state = optimizer.init(layers)
    for epoch in range(EPOCHS):
        total = 0.0
        for i in rng.permutation(DAYS):
            x, y, weight = days[i]
            layers, state, loss = step(layers, state, x, y, weight)
            total += float(loss)
        if epoch % 3 == 2:
            print(f"epoch {epoch}: mean loss {total / DAYS:.4f}")
    x, y, weight = days[0]
    print("first forecasts in minutes:", np.round(10 * np.asarray(predict(layers, x))[:4], 1))


if __name__ == "__main__":
    main()
