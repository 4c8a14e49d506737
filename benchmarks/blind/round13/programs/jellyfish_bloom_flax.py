"""Forecast jellyfish blooms from coastal measurements with a residual network."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

FEATURES = 32
WIDTH = 96
BLOCKS = 8
STEPS = 700
BATCH = 256


def make_coast(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    bloom = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * np.abs(x[:, 3])
    return x, (bloom + rng.normal(0, 0.1, count)).astype(np.float32)


class BloomNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(WIDTH)(x)
        for _ in range(BLOCKS):
            y = nn.LayerNorm()(x)
            y = nn.gelu(nn.Dense(WIDTH)(y))
            x = x + y
        return nn.Dense(1)(x)[:, 0]


def main():
    x, y = make_coast(20000, 1)
    x_val, y_val = make_coast(8192, 2)
    net = BloomNet()
    params = net.init(jax.random.PRNGKey(0), x[:2])
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(2e-3, weight_decay=1e-4))
    state = optimizer.init(params)

    def loss_fn(params, x, y):
        return jnp.mean((net.apply(params, x) - y) ** 2)

    gradient = jax.jit(jax.value_and_grad(loss_fn))

    def train_step(params, state, x, y):
        loss, grads = gradient(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    def evaluate(params):
        total = 0.0
        for start in range(0, len(x_val), BATCH):
            part = slice(start, start + BATCH)
            total += float(loss_fn(params, x_val[part], y_val[part]))
        return total / (len(x_val) // BATCH)

    rng = np.random.default_rng(3)
    best = np.inf
    for step in range(STEPS):
        pick = rng.integers(0, len(x), BATCH)
        params, state, loss = train_step(params, state, x[pick], y[pick])
        if step % 20 == 19:
            best = min(best, evaluate(params))
        if step % 140 == 139:
            print(f"step {step + 1}: loss {float(loss):.4f} best validation {best:.4f}", flush=True)


if __name__ == "__main__":
    main()
