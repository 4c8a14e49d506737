"""Estimate thermal strength along glider flights with a small recurrent model."""
import numpy as np
import jax
import jax.numpy as jnp
import optax

CHANNELS = 6
HIDDEN = 64
FLIGHTS = 900
BATCH = 16
STEPS = 280


def fly(rng):
    flights = []
    for _ in range(FLIGHTS):
        n = int(rng.integers(120, 301))
        lift = np.convolve(rng.normal(size=n), np.ones(12) / 4, mode="same")
        seen = np.stack([lift * a for a in rng.normal(1.0, 0.2, CHANNELS)], axis=1)
        seen += rng.normal(0, 0.8, size=seen.shape)
        flights.append((seen.astype(np.float32), lift.astype(np.float32)))
    return flights


def collate(group):
    longest = max(len(lift) for _, lift in group)
    x = np.zeros((longest, len(group), CHANNELS), np.float32)
    y = np.zeros((longest, len(group)), np.float32)
    mask = np.zeros((longest, len(group)), np.float32)
    for k, (seen, lift) in enumerate(group):
        x[:len(lift), k], y[:len(lift), k], mask[:len(lift), k] = seen, lift, 1.0
    return x, y, mask


def init(key):
    k = jax.random.split(key, 3)
    scale = 1.0 / np.sqrt(HIDDEN)
    return {
        "wx": scale * jax.random.normal(k[0], (CHANNELS, 3 * HIDDEN)),
        "wh": scale * jax.random.normal(k[1], (HIDDEN, 3 * HIDDEN)),
        "b": jnp.zeros(3 * HIDDEN),
        "out": scale * jax.random.normal(k[2], (HIDDEN,)),
    }


def predict(p, x):
    drive = x @ p["wx"] + p["b"]

    def cell(h, d):
        rec = h @ p["wh"]
        z = jax.nn.sigmoid(d[:, :HIDDEN] + rec[:, :HIDDEN])
        r = jax.nn.sigmoid(d[:, HIDDEN:2 * HIDDEN] + rec[:, HIDDEN:2 * HIDDEN])
        n = jnp.tanh(d[:, 2 * HIDDEN:] + r * rec[:, 2 * HIDDEN:])
        h = z * h + (1.0 - z) * n
        return h, h

    _, hs = jax.lax.scan(cell, jnp.zeros((x.shape[1], HIDDEN)), drive)
    return hs @ p["out"]


def main():
    rng = np.random.default_rng(8)
    flights = fly(rng)
    params = init(jax.random.PRNGKey(8))
    tx = optax.adam(3e-3)
    state = tx.init(params)

    def loss_fn(p, x, y, mask):
        return jnp.sum(mask * (predict(p, x) - y) ** 2) / jnp.sum(mask)

    @jax.jit
    def step(p, s, x, y, mask):
        loss, g = jax.value_and_grad(loss_fn)(p, x, y, mask)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, loss

    for i in range(STEPS):
        pick = rng.choice(FLIGHTS, BATCH, replace=False)
        x, y, mask = collate([flights[j] for j in pick])
        params, state, loss = step(params, state, x, y, mask)
        if i % 40 == 39:
            print(f"step {i + 1} error {float(loss):.4f}")


if __name__ == "__main__":
    main()
