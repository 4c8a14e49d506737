"""A residual network predicts ethanol yield from yeast fermentation logs."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

SENSORS = 48
WIDTH = 128
BLOCKS = 8
BATCH = 512


def make_batches(count, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, SENSORS)).astype(np.float32)
    level = np.tanh(x[:, :8]).sum(axis=1) + x[:, 9] * x[:, 10] - np.abs(x[:, 20])
    noise = 0.2 * rng.standard_normal(count)
    return x, (level + noise).astype(np.float32)


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.LayerNorm()(x)
        h = nn.gelu(nn.Dense(WIDTH)(h))
        return x + nn.Dense(WIDTH)(h)


class YieldNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.Dense(WIDTH)(x)
        for _ in range(BLOCKS):
            h = Block()(h)
        return nn.Dense(1)(nn.LayerNorm()(h))[:, 0]


net = YieldNet()
schedule = optax.cosine_decay_schedule(2e-3, 700)
optimizer = optax.chain(optax.clip_by_global_norm(1.0),
                        optax.adamw(schedule, weight_decay=1e-4))


def loss_fn(params, x, y):
    return jnp.mean((net.apply(params, x) - y) ** 2)


grad_fn = jax.jit(jax.value_and_grad(loss_fn))
eval_fn = jax.jit(loss_fn)


def train_step(params, state, x, y):
    loss, grads = grad_fn(params, x, y)
    updates, state = optimizer.update(grads, state, params)
    params = optax.apply_updates(params, updates)
    return params, state, loss


def main():
    x, y = make_batches(40960, 1)
    x_val, y_val = make_batches(4096, 2)
    params = net.init(jax.random.PRNGKey(0), x[:2])
    state = optimizer.init(params)
    rng = np.random.default_rng(0)
    steps = 0
    for epoch in range(8):
        order = rng.permutation(len(x))
        for start in range(0, len(x), BATCH):
            rows = order[start:start + BATCH]
            params, state, loss = train_step(params, state, x[rows], y[rows])
            steps += 1
        val = float(eval_fn(params, x_val, y_val))
        print(f"epoch {epoch} steps {steps} train {float(loss):.4f} valid {val:.4f}")


if __name__ == "__main__":
    main()
