"""Learn the tension of a sounding balloon's tether from winch records."""
import numpy as np
import jax
import jax.numpy as jnp
import optax

INPUTS = 5
HIDDEN = 96
TIME = 130
BATCH = 64
STEPS = 420


def winch(rng, count):
    drive = rng.normal(size=(count, TIME, INPUTS)).astype(np.float32)
    tension = np.zeros((count, TIME), np.float32)
    level = np.zeros(count)
    for t in range(TIME):
        level = 0.92 * level + 0.3 * np.tanh(drive[:, t, 0] - 0.5 * drive[:, t, 1] * level)
        tension[:, t] = level
    return drive, tension


def init(key):
    a, b, c, d = jax.random.split(key, 4)
    s = 1.0 / np.sqrt(HIDDEN)
    return {
        "in_c": jax.random.normal(a, (INPUTS, HIDDEN)) * 0.4,
        "in_g": jax.random.normal(b, (INPUTS, HIDDEN)) * 0.4,
        "rec_c": jax.random.normal(c, (HIDDEN, HIDDEN)) * s,
        "rec_g": jax.random.normal(d, (HIDDEN, HIDDEN)) * s,
        "bias": jnp.zeros(HIDDEN),
        "out": jnp.zeros(HIDDEN),
    }


def cell(p, h, x):
    gate = jax.nn.sigmoid(x @ p["in_g"] + h @ p["rec_g"] + p["bias"])
    cand = jnp.tanh(x @ p["in_c"] + h @ p["rec_c"])
    return gate * h + (1.0 - gate) * cand


def tension_of(p, drive):
    h = jnp.zeros((drive.shape[0], HIDDEN))
    outs = []
    for t in range(drive.shape[1]):
        h = cell(p, h, drive[:, t])
        outs.append(h @ p["out"])
    return jnp.stack(outs, axis=1)


def main():
    rng = np.random.default_rng(27)
    drive, tension = winch(rng, 4000)
    held_drive, held_tension = winch(rng, 512)
    params = init(jax.random.PRNGKey(27))
    tx = optax.adam(2e-3)
    state = tx.init(params)

    def loss_fn(p, x, y):
        return jnp.mean((tension_of(p, x) - y) ** 2)

    @jax.jit
    def step(p, s, x, y):
        loss, g = jax.value_and_grad(loss_fn)(p, x, y)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, loss

    judge = jax.jit(loss_fn)
    for i in range(STEPS):
        pick = rng.integers(0, len(drive), size=BATCH)
        params, state, loss = step(params, state, drive[pick], tension[pick])
        if i % 70 == 69:
            held = judge(params, held_drive, held_tension)
            print(f"step {i + 1} error {float(loss):.5f} held-out {float(held):.5f}")


if __name__ == "__main__":
    main()
