"""Train a small network with JAX for some seconds: python train_jax.py SECONDS."""

from __future__ import annotations

import sys
import time

import jax
import jax.numpy as jnp

HAS_GPU = jax.default_backend() == "gpu"
ROWS, WIDTH, DEPTH = (4096, 2048, 6) if HAS_GPU else (64, 64, 2)


@jax.jit
def train_step(weights, rows, wanted):
    def loss_of(weights):
        found = rows
        for weight in weights:
            found = jnp.tanh(found @ weight)
        return jnp.square(found - wanted).mean()

    loss, slopes = jax.value_and_grad(loss_of)(weights)
    return [weight - 1e-3 * slope for weight, slope in zip(weights, slopes, strict=True)], loss


def main(seconds: float) -> None:
    keys = jax.random.split(jax.random.key(0), DEPTH + 2)
    weights = [jax.random.normal(key, (WIDTH, WIDTH)) / WIDTH**0.5 for key in keys[:DEPTH]]
    rows, wanted = (jax.random.normal(key, (ROWS, WIDTH)) for key in keys[DEPTH:])
    steps, until_s = 0, time.monotonic() + seconds
    while time.monotonic() < until_s:
        weights, loss = train_step(weights, rows, wanted)
        loss.block_until_ready()
        steps += 1
    print(f"{steps} steps, loss {loss:.4f}")


if __name__ == "__main__":
    main(float(sys.argv[1]))
