"""Predict the slide position of a trombone from partial amplitudes."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

PARTIALS = 48
POSITIONS = 7
EPOCHS = 45
BATCH = 128


def make_notes(count, seed):
    rng = np.random.default_rng(seed)
    position = rng.integers(0, POSITIONS, count)
    order = np.arange(1, PARTIALS + 1)
    decay = np.exp(-order[None, :] * (0.05 + 0.01 * position[:, None]))
    comb = 1.0 + 0.3 * np.cos(order[None, :] * (position[:, None] + 1) * 0.4)
    amplitude = decay * comb * rng.lognormal(0, 0.2, (count, PARTIALS))
    return np.log(amplitude).astype(np.float32), position.astype(np.int32)


def init(key, sizes):
    params = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        key, sub = jax.random.split(key)
        params.append({
            "w": jax.random.normal(sub, (n_in, n_out)) * np.sqrt(2.0 / n_in),
            "b": jnp.zeros(n_out),
            "g": jnp.ones(n_out),
        })
    return params


def forward(params, x):
    for layer in params[:-1]:
        x = x @ layer["w"] + layer["b"]
        x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
        x = jax.nn.gelu(x * layer["g"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    logp = jax.nn.log_softmax(forward(params, x))
    return -jnp.take_along_axis(logp, y[:, None], axis=1).mean()


@partial(jax.jit, static_argnames=("lr", "momentum"))
def train_step(params, velocity, x, y, lr, momentum):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    velocity = jax.tree_util.tree_map(lambda v, g: momentum * v - lr * g, velocity, grads)
    params = jax.tree_util.tree_map(lambda p, v: p + v, params, velocity)
    return params, velocity, loss


@jax.jit
def accuracy(params, x, y):
    return (forward(params, x).argmax(-1) == y).mean()


def main():
    x, y = make_notes(6400, 1)
    x_test, y_test = make_notes(1500, 2)
    params = init(jax.random.PRNGKey(0), [PARTIALS, 192, 192, 192, 192, POSITIONS])
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    rng = np.random.default_rng(3)
    for epoch in range(EPOCHS):
        lr = 0.02 * 0.96 ** epoch
        order = rng.permutation(len(x))
        total = 0.0
        for start in range(0, len(x), BATCH):
            pick = order[start:start + BATCH]
            params, velocity, loss = train_step(params, velocity, x[pick], y[pick], lr, 0.9)
            total += loss
        if epoch % 15 == 14:
            score = accuracy(params, x_test, y_test)
            print(f"epoch {epoch + 1}: loss {float(total) / 50:.4f} accuracy {float(score):.3f}")


if __name__ == "__main__":
    main()
