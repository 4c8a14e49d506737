"""Fit a deep surrogate of algal growth in a photobioreactor with JAX and optax."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

INPUTS, WIDTH, LAYERS = 12, 160, 12
BATCH, STEPS = 256, 900


def reactor_runs(n, rng):
    """Light, nutrients and temperature in; growth over a day out."""
    x = rng.uniform(-1, 1, (n, INPUTS)).astype(np.float32)
    light, nitrate, heat = x[:, 0] + 1.1, x[:, 1] + 1.1, x[:, 2]
    rate = light / (0.4 + light) * nitrate / (0.3 + nitrate) * np.exp(-2 * heat ** 2)
    return x, (rate + 0.1 * np.sin(3 * x[:, 3:].sum(1))).astype(np.float32)


def init_params(key):
    sizes = [INPUTS] + [WIDTH] * LAYERS + [1]
    params = []
    for fan_in, fan_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({
            "w": jax.random.normal(sub, (fan_in, fan_out)) * jnp.sqrt(2.0 / fan_in),
            "b": jnp.zeros(fan_out)})
    return params


def predict(params, x):
    h = x
    for layer in params[:-1]:
        h = jax.nn.gelu(h @ layer["w"] + layer["b"])
    return (h @ params[-1]["w"] + params[-1]["b"])[:, 0]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def main():
    rng = np.random.default_rng(2)
    x, y = reactor_runs(40000, rng)
    params = init_params(jax.random.PRNGKey(2))
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.cosine_decay_schedule(1e-3, STEPS), weight_decay=1e-4))
    state = optimizer.init(params)
    value_and_grad = jax.jit(jax.value_and_grad(loss_fn))

    total = 0.0
    for step in range(1, STEPS + 1):
        rows = rng.integers(0, len(x), BATCH)
        loss, grads = value_and_grad(params, x[rows], y[rows])
        updates, state = optimizer.update(grads, state, params)
        params = optax.apply_updates(params, updates)
        total += float(loss)
        if step % 180 == 0:
            print(f"step {step}: mean loss {total / 180:.5f}")
            total = 0.0


if __name__ == "__main__":
    main()
