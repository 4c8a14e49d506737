"""Fit the orbital energies of small molecules with a flax network."""
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

N_MOLECULES = 10_240
N_FEATURES = 96
BATCH = 256
EPOCHS = 28


class EnergyNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(192)(x)
        for _ in range(3):
            h = nn.LayerNorm()(x)
            h = nn.silu(nn.Dense(192)(h))
            x = x + nn.Dense(192)(h)
        return nn.Dense(2)(x)


net = EnergyNet()
direction = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())


def make_molecules(rng):
    x = rng.normal(size=(N_MOLECULES, N_FEATURES)).astype(np.float32)
    mix = rng.normal(size=(N_FEATURES, 8)) / np.sqrt(N_FEATURES)
    z = x @ mix
    homo = -6.0 + np.tanh(z[:, 0]) + 0.5 * z[:, 1] * z[:, 2]
    lumo = homo + 3.0 + np.abs(z[:, 3]) + 0.2 * np.sin(3.0 * z[:, 4])
    y = np.stack([homo, lumo], axis=1)
    return x, ((y - y.mean(0)) / y.std(0)).astype(np.float32)


def loss_fn(params, x, y):
    return jnp.mean((net.apply(params, x) - y) ** 2)


@partial(jax.jit, static_argnames=("lr",))
def update(params, state, x, y, lr):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    step, state = direction.update(grads, state, params)
    params = jax.tree_util.tree_map(lambda p, s: p - lr * s, params, step)
    return params, state, loss


def main():
    rng = np.random.default_rng(17)
    x, y = make_molecules(rng)
    x_test, y_test = x[-2048:], y[-2048:]
    x, y = x[:-2048], y[:-2048]
    params = net.init(jax.random.PRNGKey(0), jnp.zeros((1, N_FEATURES)))
    state = direction.init(params)
    schedule = optax.warmup_cosine_decay_schedule(1e-4, 2e-3, 4, EPOCHS, 1e-5)

    for epoch in range(EPOCHS):
        lr = float(schedule(epoch))
        order = rng.permutation(len(x))
        losses = []
        for start in range(0, len(order), BATCH):
            pick = order[start : start + BATCH]
            params, state, loss = update(params, state, x[pick], y[pick], lr=lr)
            losses.append(loss)
        if epoch % 6 == 0 or epoch == EPOCHS - 1:
            print(f"epoch {epoch:3d}  lr {lr:.2e}  loss {float(np.mean(losses)):.4f}", flush=True)

    test = float(jax.jit(loss_fn)(params, x_test, y_test))
    print(f"test mean squared error {test:.4f}")


if __name__ == "__main__":
    main()
