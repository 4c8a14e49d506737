"""Fit a neural law of cooling to temperature curves of saunas, integrated step by step."""
import jax
import jax.numpy as jnp
import numpy as np

CURVES = 512
TIMES = 240
BATCH = 128
EPOCHS = 18
CHUNK = 40
WIDTH = 64


def make_curves(seed):
    rng = np.random.default_rng(seed)
    walls = rng.uniform(0.5, 1.5, (CURVES, 2))
    state = np.column_stack([rng.uniform(60, 95, CURVES), rng.uniform(20, 40, CURVES)])
    curves = np.zeros((TIMES, CURVES, 2), dtype=np.float32)
    for t in range(TIMES):
        flow = 0.02 * walls[:, 0] * (state[:, 0] - state[:, 1])
        state = state + np.column_stack([-flow, 0.6 * flow - 0.01 * walls[:, 1] * (state[:, 1] - 10)])
        curves[t] = state / 50 - 1
    return curves, walls.astype(np.float32)


def init(key):
    a, b, c = jax.random.split(key, 3)
    return {
        "w1": jax.random.normal(a, (4, WIDTH)) * 0.5, "b1": jnp.zeros(WIDTH),
        "w2": jax.random.normal(b, (WIDTH, WIDTH)) / 8, "b2": jnp.zeros(WIDTH),
        "w3": jax.random.normal(c, (WIDTH, 2)) * 0.01,
    }


def law(p, state, walls):
    h = jnp.tanh(jnp.concatenate([state, walls], axis=1) @ p["w1"] + p["b1"])
    h = jnp.tanh(h @ p["w2"] + p["b2"])
    return 0.05 * (h @ p["w3"])


def loss_fn(p, curves, walls):
    def advance(state, _):
        state = state + law(p, state, walls)
        return state, state

    _, path = jax.lax.scan(advance, curves[0], None, length=TIMES - 1)
    return jnp.mean((path - curves[1:]) ** 2)


@jax.jit
def train_chunk(params, moments, curves, walls, picks):
    def one(carry, pick):
        params, moments = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, curves[:, pick], walls[pick])
        moments = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, moments, grads)
        params = jax.tree_util.tree_map(lambda p, m: p - 0.02 * m, params, moments)
        return (params, moments), loss

    (params, moments), losses = jax.lax.scan(one, (params, moments), picks)
    return params, moments, losses.mean()


def main():
    curves, walls = make_curves(4)
    curves, walls = jnp.asarray(curves), jnp.asarray(walls)
    params = init(jax.random.PRNGKey(1))
    moments = jax.tree_util.tree_map(jnp.zeros_like, params)
    rng = np.random.default_rng(2)
    for epoch in range(EPOCHS):
        picks = jnp.asarray(rng.integers(0, CURVES, (CHUNK, BATCH)))
        params, moments, loss = train_chunk(params, moments, curves, walls, picks)
        print(f"chunk {epoch}: loss {float(loss):.5f}", flush=True)


if __name__ == "__main__":
    main()
