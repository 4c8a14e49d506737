"""Learns the dynamics of a driven double pendulum with a deep residual Flax model."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

N = 20000
BATCH = 512
STEPS = 320


def trajectories():
    rng = np.random.default_rng(21)
    s = rng.uniform(-2, 2, (N, 4)).astype(np.float32)
    u = rng.uniform(-1, 1, (N, 1)).astype(np.float32)
    nxt, dt = s.copy(), 0.02
    for _ in range(5):
        a, b, va, vb = nxt.T
        d = a - b
        acc_a = (-9.8 * (2 * np.sin(a) + np.sin(d)) - np.sin(d) * (vb ** 2 + va ** 2 * np.cos(d))) / (3 - np.cos(2 * d))
        acc_b = (2 * np.sin(d) * (va ** 2 + 9.8 * np.cos(a)) + u[:, 0]) / (3 - np.cos(2 * d))
        nxt = np.stack([a + dt * va, b + dt * vb, va + dt * acc_a, vb + dt * acc_b], 1).astype(np.float32)
    return np.concatenate([s, u], 1), (nxt - s) * 10


class Dynamics(nn.Module):
    width: int = 288
    blocks: int = 8

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(self.width)(x)
        for _ in range(self.blocks):
            r = nn.LayerNorm()(h)
            r = nn.Dense(self.width)(r)
            h = h + nn.Dense(self.width)(nn.silu(r))
        return nn.Dense(4)(nn.LayerNorm()(h))


def main():
    x, y = trajectories()
    model = Dynamics()
    params = model.init(jax.random.PRNGKey(7), x[:1])
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3, weight_decay=1e-4))
    opt_state = tx.init(params)

    def loss_fn(p, xb, yb):
        return jnp.mean((model.apply(p, xb) - yb) ** 2)

    grad_fn = jax.jit(jax.value_and_grad(loss_fn))

    def train_step(params, opt_state, xb, yb):
        loss, grads = grad_fn(params, xb, yb)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    rng = np.random.default_rng(3)
    losses = []
    for k in range(STEPS):
        pick = rng.integers(0, N, BATCH)
        params, opt_state, loss = train_step(params, opt_state, x[pick], y[pick])
        losses.append(loss)
    losses = np.array([float(v) for v in losses])
    print(f"loss first 20 steps {losses[:20].mean():.3f}, last 20 steps {losses[-20:].mean():.3f}")


if __name__ == "__main__":
    main()
