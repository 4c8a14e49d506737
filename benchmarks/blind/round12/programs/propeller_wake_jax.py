"""Fit a sine-layer surrogate of a propeller wake."""
import numpy as np
import jax
import jax.numpy as jnp
import optax

WIDTH = 160
SAMPLES = 24000
BATCH = 400
EPOCHS = 50


def tow(rng, count):
    x = rng.uniform(-1, 1, size=(count, 4)).astype(np.float32)
    swirl = np.sin(3 * np.pi * x[:, 0] + 4 * x[:, 1]) * np.exp(-2 * x[:, 2] ** 2)
    axial = (1 - x[:, 1] ** 2) * np.cos(2 * x[:, 3])
    return x, np.stack([swirl, axial], axis=1).astype(np.float32)


def init(key):
    sizes = [4, WIDTH, WIDTH, WIDTH, 2]
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"w": jax.random.normal(k, (a, b)) / np.sqrt(a), "b": jnp.zeros(b)}
            for k, a, b in zip(keys, sizes[:-1], sizes[1:])]


def wake(params, x):
    for layer in params[:-1]:
        x = jnp.sin(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def main():
    rng = np.random.default_rng(67)
    x, y = (jnp.asarray(a) for a in tow(rng, SAMPLES))
    held_x, held_y = (jnp.asarray(a) for a in tow(rng, 4000))
    params = init(jax.random.PRNGKey(67))
    tx = optax.adam(optax.exponential_decay(2e-3, SAMPLES // BATCH, 0.93))
    state = tx.init(params)

    def loss_fn(p, xb, yb):
        return jnp.mean((wake(p, xb) - yb) ** 2)

    @jax.jit
    def epoch(p, s, key):
        order = jax.random.permutation(key, SAMPLES).reshape(-1, BATCH)

        def step(carry, pick):
            p, s = carry
            loss, g = jax.value_and_grad(loss_fn)(p, x[pick], y[pick])
            updates, s = tx.update(g, s, p)
            return (optax.apply_updates(p, updates), s), loss

        (p, s), losses = jax.lax.scan(step, (p, s), order)
        return p, s, losses.mean(), loss_fn(p, held_x, held_y)

    key = jax.random.PRNGKey(68)
    for e in range(EPOCHS):
        params, state, loss, held = epoch(params, state, jax.random.fold_in(key, e))
        if e % 10 == 9:
            print(f"epoch {e + 1} error {float(loss):.6f} held-out {float(held):.6f}")


if __name__ == "__main__":
    main()
