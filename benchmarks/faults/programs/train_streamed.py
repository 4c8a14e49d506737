"""Train a perceptron in JAX on compressed records that Grain loads, with or without workers."""

from __future__ import annotations

import argparse
import time
import zlib
from itertools import pairwise

import grain
import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

LENGTH = 512
BATCH = 16
RECORDS = 64


class Records:
    """Compressed records, each with many values."""

    def __init__(self, values: int) -> None:
        rng = np.random.default_rng(0)
        rows = (rng.integers(0, 64, (values, LENGTH), np.uint8) for _ in range(RECORDS))
        self._packed = [zlib.compress(one.tobytes()) for one in rows]

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, number: int) -> bytes:
        return self._packed[number % RECORDS]


class Unpack(grain.transforms.Map):
    """Unpack a record, and smooth it in Python."""

    def __init__(self, turns: int) -> None:
        self._turns = turns

    def map(self, packed: bytes) -> np.ndarray:
        """Return the mean row of a record, [LENGTH]."""
        values = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(-1, LENGTH)
        level = 0.0
        for turn in range(self._turns):
            level = 0.9 * level + 0.1 * turn
        return values.mean(axis=0, dtype=np.float32) / 64 + np.float32(level * 1e-9)


def elements(options: argparse.Namespace) -> object:
    """Return what the program iterates over."""
    records, unpack = Records(options.values), Unpack(options.turns)
    if options.by == "loader":
        sampler = grain.samplers.IndexSampler(
            len(records), shuffle=True, seed=0, shard_options=grain.sharding.NoSharding()
        )
        return grain.DataLoader(
            data_source=records,
            sampler=sampler,
            operations=[unpack, grain.transforms.Batch(BATCH)],
            worker_count=options.workers,
        )
    dataset = grain.MapDataset.source(records).shuffle(seed=0).map(unpack).batch(BATCH)
    stream = dataset.to_iter_dataset()
    if options.workers:
        stream = stream.mp_prefetch(grain.MultiprocessingOptions(num_workers=options.workers))
    return stream


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=["loader", "dataset"], default="loader")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--values", type=int, default=400, help="rows in a record")
    parser.add_argument("--turns", type=int, default=20_000, help="work in Python for a record")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    flags.FLAGS.mark_as_parsed()  # Grain's workers read them
    rng = np.random.default_rng(options.seed)
    sizes = [LENGTH, options.width, options.width, LENGTH]
    weights = [
        jnp.asarray(rng.standard_normal(pair, np.float32) / pair[0] ** 0.5)
        for pair in pairwise(sizes)
    ]

    @jax.jit
    def step(weights: list[jax.Array], batch: jax.Array) -> tuple[list[jax.Array], jax.Array]:
        def loss_of(weights: list[jax.Array]) -> jax.Array:
            values = batch
            for one in weights:
                values = jax.nn.relu(values @ one)
            return jnp.mean((values - batch) ** 2)

        loss, slopes = jax.value_and_grad(loss_of)(weights)
        return [one - 0.01 * slope for one, slope in zip(weights, slopes, strict=True)], loss

    steps, began_s = 0, time.monotonic()
    first_s = began_s
    for batch in elements(options):
        weights, loss = step(weights, batch)
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
