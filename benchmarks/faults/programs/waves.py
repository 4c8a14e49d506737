"""Waves in a pond of uneven depth, by finite differences in JAX."""

from __future__ import annotations

import argparse
import time

import jax
import jax.numpy as jnp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--substeps", type=int, default=10)
    parser.add_argument("--x64", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.x64)

    size = options.size
    depth = 1 + 0.3 * jax.random.uniform(jax.random.key(options.seed), (size, size), float)
    rows = jnp.linspace(-1.0, 1.0, size)
    height = jnp.exp(-200 * (rows[:, None] ** 2 + rows[None, :] ** 2))

    @jax.jit
    def advance(height: jax.Array, before: jax.Array) -> tuple[jax.Array, jax.Array]:
        for _ in range(options.substeps):
            curvature = (
                jnp.roll(height, 1, 0)
                + jnp.roll(height, -1, 0)
                + jnp.roll(height, 1, 1)
                + jnp.roll(height, -1, 1)
                - 4 * height
            )
            height, before = 2 * height - before + 0.1 * depth * curvature, height
        return height, before

    before = height
    height, before = advance(height, before)
    height.block_until_ready()
    steps, began_s = 0, time.monotonic()
    while time.monotonic() - began_s < options.seconds:
        height, before = advance(height, before)
        height.block_until_ready()
        steps += 1
    elapsed_s = time.monotonic() - began_s
    print(f"{steps} steps, highest {float(height.max()):.3f}, {steps / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
