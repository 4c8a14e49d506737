"""Residual MLP for methane uptake of zeolite frameworks (flax + optax)."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

N_FRAMEWORKS, N_DESC = 12000, 24
WIDTH, BLOCKS = 64, 12
BATCH, STEPS = 256, 700


class UptakeNet(nn.Module):
    width: int
    blocks: int

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(self.width)(x)
        for _ in range(self.blocks):
            y = nn.LayerNorm()(h)
            y = nn.gelu(nn.Dense(self.width)(y))
            h = h + 0.3 * y
        return nn.Dense(1)(h)[:, 0]


def make_frameworks(rng):
    x = rng.normal(size=(N_FRAMEWORKS, N_DESC)).astype(np.float32)
    pore = np.exp(-0.5 * (x[:, 0] - 0.4) ** 2)
    y = 3.0 * pore + np.tanh(x[:, 1] * x[:, 2]) + 0.4 * x[:, 3] - 0.2 * x[:, 4] ** 2
    y = y + 0.05 * rng.normal(size=N_FRAMEWORKS)
    return x, y.astype(np.float32)


def main():
    rng = np.random.default_rng(11)
    x, y = make_frameworks(rng)
    x_test, y_test = x[-2000:], y[-2000:]
    x, y = x[:-2000], y[:-2000]

    model = UptakeNet(WIDTH, BLOCKS)
    params = model.init(jax.random.PRNGKey(3), jnp.zeros((1, N_DESC)))
    schedule = optax.cosine_decay_schedule(2e-3, STEPS)
    tx = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(schedule, weight_decay=1e-4),
    )
    opt_state = tx.init(params)

    def loss_fn(params, bx, by):
        return jnp.mean((model.apply(params, bx) - by) ** 2)

    grad_fn = jax.jit(jax.value_and_grad(loss_fn))

    def step(params, opt_state, bx, by):
        loss, grads = grad_fn(params, bx, by)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        return params, opt_state, loss

    running = 0.0
    for it in range(STEPS):
        idx = rng.integers(0, len(x), BATCH)
        params, opt_state, loss = step(params, opt_state, x[idx], y[idx])
        running += float(loss)
        if (it + 1) % 175 == 0:
            print(f"step {it + 1:5d}  mse {running / 175:.4f}")
            running = 0.0

    pred = np.asarray(jax.jit(model.apply)(params, x_test))
    r2 = 1.0 - np.mean((pred - y_test) ** 2) / np.var(y_test)
    print(f"test R2 {r2:.3f}")


if __name__ == "__main__":
    main()
