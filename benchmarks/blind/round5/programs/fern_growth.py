"""A gated recurrent model of fern frond length from daily weather (JAX)."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

DAYS, WEATHER, UNITS = 100, 6, 48
PLOTS, BATCH, STEPS = 512, 32, 260


def seasons():
    rng = np.random.default_rng(41)
    day = np.arange(DAYS)
    warmth = 12 + 6 * np.sin(day / 30)[None] + rng.normal(0, 2, (PLOTS, DAYS))
    rain = rng.gamma(0.7, 3.0, (PLOTS, DAYS))
    light = 8 + 3 * np.sin(day / 35)[None] + rng.normal(0, 1, (PLOTS, DAYS))
    water = np.zeros(PLOTS)
    length = np.ones(PLOTS)
    grown = np.empty((PLOTS, DAYS))
    for t in range(DAYS):
        water = 0.85 * water + rain[:, t]
        rate = 0.02 * np.tanh(water / 8) * np.clip(warmth[:, t] - 6, 0, None) / 8
        length = length + rate * length * (1 - length / 30)
        grown[:, t] = length
    other = rng.normal(0, 1, (PLOTS, DAYS, WEATHER - 3))
    x = np.concatenate([np.stack([warmth / 15, rain / 5, light / 10], 2), other], 2)
    return x.astype(np.float32), (grown / 10).astype(np.float32)


def start(key):
    a, b, c = jax.random.split(key, 3)
    return {"wx": 0.3 * jax.random.normal(a, (WEATHER, 3 * UNITS)),
            "wh": 0.1 * jax.random.normal(b, (UNITS, 3 * UNITS)),
            "bias": jnp.zeros(3 * UNITS),
            "out": 0.2 * jax.random.normal(c, (UNITS,)), "shift": jnp.array(0.0)}


def cell(p, h, x):
    gx = x @ p["wx"] + p["bias"]
    gh = h @ p["wh"]
    xr, xz, xn = jnp.split(gx, 3, axis=-1)
    hr, hz, hn = jnp.split(gh, 3, axis=-1)
    r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
    n = jnp.tanh(xn + r * hn)
    return (1 - z) * n + z * h


def forecast(p, x):
    h = jnp.zeros((x.shape[0], UNITS))
    lengths = []
    for t in range(DAYS):
        h = cell(p, h, x[:, t])
        lengths.append(h @ p["out"] + p["shift"])
    return jnp.stack(lengths, axis=1)


def loss_of(p, x, y):
    return jnp.mean((forecast(p, x) - y) ** 2)


optimizer = optax.adam(5e-3)


@jax.jit
def step(p, state, x, y):
    loss, grads = jax.value_and_grad(loss_of)(p, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(p, updates), state, loss


def main():
    x, y = seasons()
    p = start(jax.random.PRNGKey(3))
    state = optimizer.init(p)
    rng = np.random.default_rng(5)
    for number in range(STEPS):
        chosen = rng.integers(0, PLOTS - 64, BATCH)
        p, state, loss = step(p, state, x[chosen], y[chosen])
        if number % 65 == 64:
            print(f"step {number + 1}: loss {float(loss):.4f}")
    print(f"trained on {STEPS * BATCH} plot seasons")
    held = float(jax.jit(loss_of)(p, x[-64:], y[-64:]))
    print(f"held-out error: {held ** 0.5:.3f} decimetres")


if __name__ == "__main__":
    main()
