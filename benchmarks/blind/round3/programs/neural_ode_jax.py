"""Fit a neural vector field to damped-oscillator tracks by differentiating through an RK4 integrator."""
import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, DT, TRACKS, BATCH = 18, 0.05, 512, 128


def true_tracks(seed=1):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(TRACKS, 4))
    track = [y]
    fine = 10
    for _ in range(STEPS * fine):
        q, v = y[:, :2], y[:, 2:]
        a = -np.sin(q) * np.array([2.0, 3.0]) - 0.2 * v + 0.3 * q[:, ::-1]
        y = y + DT / fine * np.concatenate([v, a], 1)
        track.append(y)
    return np.stack(track[::fine], 1).astype(np.float32)


class Field(nn.Module):
    width: int = 96

    @nn.compact
    def __call__(self, y):
        h = nn.tanh(nn.Dense(self.width)(y))
        h = nn.tanh(nn.Dense(self.width)(h))
        return nn.Dense(4)(h)


field = Field()


def rk4(params, y):
    f = functools.partial(field.apply, params)
    k1 = f(y)
    k2 = f(y + 0.5 * DT * k1)
    k3 = f(y + 0.5 * DT * k2)
    k4 = f(y + DT * k3)
    return y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(params, y0):
    y, path = y0, []
    for _ in range(STEPS):
        y = rk4(params, y)
        path.append(y)
    return jnp.stack(path, axis=1)


def mismatch(params, track):
    return jnp.mean((integrate(params, track[:, 0]) - track[:, 1:]) ** 2)


schedule = optax.cosine_decay_schedule(4e-3, 400)
tx = optax.adam(schedule)


@jax.jit
def improve(params, state, track):
    value, grads = jax.value_and_grad(mismatch)(params, track)
    updates, state = tx.update(grads, state)
    return optax.apply_updates(params, updates), state, value


def main(iterations=400):
    data = true_tracks()
    rng = np.random.default_rng(3)
    params = field.init(jax.random.PRNGKey(4), jnp.zeros((1, 4)))
    state = tx.init(params)
    for i in range(iterations):
        rows = rng.integers(0, TRACKS, BATCH)
        params, state, value = improve(params, state, data[rows])
        if i % 100 == 0:
            print(f"iteration {i}: mismatch {float(value):.3f}", flush=True)
    print(f"final mismatch {float(jax.jit(mismatch)(params, data)):.3f}")


if __name__ == "__main__":
    main()
