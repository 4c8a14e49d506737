"""Train a perceptron in JAX on compressed records, unpacked between the steps or ahead of them."""

from __future__ import annotations

import argparse
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np

LENGTH = 512
BATCH = 64
RECORDS = 32


def packed(rng: np.random.Generator, count: int) -> list[bytes]:
    """Return compressed records of one batch, each with more values than are used."""
    values = rng.integers(0, 64, (RECORDS, count, BATCH, LENGTH), np.uint8)
    return [zlib.compress(one.tobytes()) for one in values]


def batches(records: list[bytes], count: int) -> Iterator[np.ndarray]:
    """Yield batches [BATCH, LENGTH] for ever."""
    while True:
        for record in records:
            values = np.frombuffer(zlib.decompress(record), np.uint8)
            yield values.reshape(count, BATCH, LENGTH).mean(axis=0, dtype=np.float32) / 64


def ahead(source: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the same, each loaded while the one before it is used."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, source)
        while True:
            batch, coming = coming.result(), pool.submit(next, source)
            yield batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--packed", type=int, default=48, help="size of a record in batches")
    parser.add_argument("--ahead", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    sizes = [LENGTH, options.width, options.width, LENGTH]
    weights = [
        jnp.asarray(rng.standard_normal(pair, np.float32) / pair[0] ** 0.5)
        for pair in pairwise(sizes)
    ]

    def loss_of(weights: list[jax.Array], batch: jax.Array) -> jax.Array:
        found = batch
        for one in weights:
            found = jnp.tanh(found @ one)
        return jnp.mean((found - batch) ** 2)

    @jax.jit
    def train_step(weights: list[jax.Array], batch: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        return [one - 0.01 * more for one, more in zip(weights, gradients, strict=True)], loss

    source = batches(packed(rng, options.packed), options.packed)
    steps, began_s = 0, time.monotonic()
    first_s = began_s
    for batch in ahead(source) if options.ahead else source:
        weights, loss = train_step(weights, batch)
        loss.block_until_ready()
        if steps == 0:
            first_s = time.monotonic()
        steps += 1
        if time.monotonic() - began_s >= options.seconds:
            break
    elapsed_s = time.monotonic() - first_s
    print(f"{steps} steps, loss {loss:.3f}, {(steps - 1) / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
