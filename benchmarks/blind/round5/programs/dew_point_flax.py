"""Forecast the dew point a day ahead with a stack of gated, dilated layers (Flax)."""
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

STATIONS, HOURS, SERIES = 60, 24 * 150, 4
WINDOW, BATCH, STEPS = 192, 24, 240


def weather():
    rng = np.random.default_rng(71)
    hour = np.arange(HOURS)
    day = np.sin(2 * np.pi * hour / 24)
    front = np.zeros((STATIONS, HOURS))
    for t in range(1, HOURS):
        front[:, t] = 0.99 * front[:, t - 1] + rng.normal(0, 0.4, STATIONS)
    warmth = 12 + 5 * day + front + rng.normal(0, 0.5, front.shape)
    humid = 0.6 - 0.2 * day + 0.05 * np.tanh(front) + rng.normal(0, 0.03, front.shape)
    dew = warmth - (1 - np.clip(humid, 0.1, 1)) * 20
    sun = np.clip(day, 0, None) * rng.random((STATIONS, HOURS))
    return np.stack([warmth / 10, humid, dew / 10, sun], 2).astype(np.float32)


def late(h, hours):
    return jnp.pad(h, ((0, 0), (hours, 0), (0, 0)))[:, :-hours]


class Stack(nn.Module):
    width: int = 80

    @nn.compact
    def __call__(self, x):
        h = nn.Dense(self.width)(x)
        for level in range(6):
            gap = 2 ** level
            z = nn.Dense(2 * self.width)(jnp.concatenate([h, late(h, gap), late(h, 2 * gap)], -1))
            value, gate = jnp.split(z, 2, axis=-1)
            h = h + jnp.tanh(value) * nn.sigmoid(gate)
        return nn.Dense(1)(nn.gelu(nn.Dense(self.width)(h[:, -1])))[:, 0]


model = Stack()
optimizer = optax.adam(1e-3)


def loss_of(params, x, y):
    return jnp.mean((model.apply(params, x) - y) ** 2)


@jax.jit
def step(params, state, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    updates, state = optimizer.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def draw(rng, data, count, low, high):
    station = rng.integers(0, STATIONS, count)
    end = rng.integers(low + WINDOW, high - 24, count)
    x = np.stack([data[s, e - WINDOW:e] for s, e in zip(station, end)])
    return x, data[station, end + 23, 2]


def main():
    data = weather()
    rng = np.random.default_rng(1)
    params = model.init(jax.random.PRNGKey(2), jnp.zeros((1, WINDOW, SERIES)))
    state = optimizer.init(params)
    began = time.perf_counter()
    split = int(0.8 * HOURS)
    for number in range(STEPS):
        x, y = draw(rng, data, BATCH, 0, split)
        params, state, loss = step(params, state, x, y)
        if number == 0:
            loss.block_until_ready()
            print(f"first step took {time.perf_counter() - began:.0f} s")
        elif number % 80 == 79:
            print(f"step {number + 1}: loss {float(loss):.4f}")
    x, y = draw(rng, data, 256, split, HOURS)
    print(f"held-out error {10 * float(jax.jit(loss_of)(params, x, y)) ** 0.5:.2f} degrees")


if __name__ == "__main__":
    main()
