"""Predict rider posture from saddle pressure mats with a deep residual net."""
import numpy as np
import jax
import jax.numpy as jnp
import optax

CELLS = 96
WIDTH = 160
DEPTH = 18
POSTURES = 8
BATCH = 256
STEPS = 450


def ride(rng, count):
    posture = rng.integers(0, POSTURES, size=count)
    centre = rng.normal(size=(POSTURES, CELLS))
    x = centre[posture] + rng.normal(0, 2.6, size=(count, CELLS))
    return x.astype(np.float32), posture.astype(np.int32)


def init(key):
    keys = jax.random.split(key, 2 * DEPTH + 2)
    blocks = []
    for d in range(DEPTH):
        blocks.append({
            "w": jax.random.normal(keys[2 * d], (WIDTH, WIDTH)) / np.sqrt(WIDTH),
            "b": jnp.zeros(WIDTH),
            "scale": jnp.full(WIDTH, 0.3),
        })
    return {
        "enter": jax.random.normal(keys[-2], (CELLS, WIDTH)) / np.sqrt(CELLS),
        "blocks": blocks,
        "leave": jax.random.normal(keys[-1], (WIDTH, POSTURES)) / np.sqrt(WIDTH),
    }


def logits_of(p, x):
    h = x @ p["enter"]
    for block in p["blocks"]:
        n = (h - h.mean(-1, keepdims=True)) / (h.std(-1, keepdims=True) + 1e-4)
        h = h + block["scale"] * jax.nn.gelu(n @ block["w"] + block["b"])
    return h @ p["leave"]


def loss_fn(p, x, y):
    z = logits_of(p, x)
    return optax.softmax_cross_entropy_with_integer_labels(z, y).mean()


def main():
    rng = np.random.default_rng(71)
    x, y = ride(rng, 24000)
    params = init(jax.random.PRNGKey(71))
    schedule = optax.cosine_decay_schedule(2e-3, STEPS)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))
    state = tx.init(params)
    gradient = jax.jit(jax.value_and_grad(loss_fn))

    def step(p, s, xb, yb):
        loss, g = gradient(p, xb, yb)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, loss

    for i in range(STEPS):
        pick = rng.integers(0, len(x), size=BATCH)
        params, state, loss = step(params, state, x[pick], y[pick])
        if i % 90 == 89:
            print(f"step {i + 1} loss {float(loss):.4f}")
    guess = jax.jit(logits_of)(params, x[:4000]).argmax(-1)
    print(f"right {float((guess == y[:4000]).mean()):.3f}")


if __name__ == "__main__":
    main()
