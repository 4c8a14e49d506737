"""Coupling flow for a 2-d density (Flax + Optax)."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

LAYERS, WIDTH, BATCH, STEPS = 12, 128, 1024, 300


def rings(n, seed):
    rng = np.random.default_rng(seed)
    r = rng.choice([0.8, 1.8, 2.8], n) + 0.08 * rng.normal(size=n)
    a = rng.uniform(0, 2 * np.pi, n)
    return np.stack([r * np.cos(a), r * np.sin(a)], 1).astype(np.float32)


class Coupling(nn.Module):
    flip: bool

    @nn.compact
    def __call__(self, x):
        a, b = (x[:, 1:], x[:, :1]) if self.flip else (x[:, :1], x[:, 1:])
        freq = jnp.concatenate([a, jnp.sin(2 * a), jnp.cos(2 * a)], 1)
        h = nn.gelu(nn.Dense(WIDTH)(freq))
        h = nn.gelu(nn.Dense(WIDTH)(h))
        s, t = jnp.split(nn.Dense(2, kernel_init=nn.initializers.zeros)(h), 2, axis=1)
        s = 2 * jnp.tanh(s)
        b = b * jnp.exp(s) + t
        return (jnp.concatenate([b, a], 1) if self.flip else jnp.concatenate([a, b], 1)), s[:, 0]


class Flow(nn.Module):
    @nn.compact
    def __call__(self, x):
        logdet = jnp.zeros(x.shape[0])
        for i in range(LAYERS):
            x, ld = Coupling(flip=bool(i % 2))(x)
            logdet += ld
        return x, logdet


flow = Flow()
tx = optax.chain(optax.clip_by_global_norm(5.0), optax.adam(1e-3))


def nll(params, x):
    z, logdet = flow.apply(params, x)
    return jnp.mean(0.5 * (z ** 2).sum(1) + jnp.log(2 * jnp.pi) - logdet)


@jax.jit
def step(params, state, x):
    value, grads = jax.value_and_grad(nll)(params, x)
    updates, state = tx.update(grads, state, params)
    return optax.apply_updates(params, updates), state, value


def main():
    data = rings(60_000, 1)
    rng = np.random.default_rng(2)
    params = flow.init(jax.random.PRNGKey(1), data[:2])
    state = tx.init(params)
    for i in range(STEPS):
        params, state, value = step(params, state, data[rng.integers(0, len(data), BATCH)])
        if i % 100 == 0:
            print(f"step {i}: {float(value):.2f}", flush=True)
    print(f"held-out nll {float(nll(params, rings(5000, 9))):.2f}")


if __name__ == "__main__":
    main()
