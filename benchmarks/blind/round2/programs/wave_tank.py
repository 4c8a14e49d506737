"""Shallow water waves in a tank with an island, solved with finite differences in JAX."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

N = 640
BLOCKS = 9
BLOCK = 170


def bathymetry():
    rng = np.random.default_rng(88)
    y, x = np.mgrid[0:1:N * 1j, 0:1:N * 1j]
    depth = 1.0 - 0.8 * np.exp(-((x - 0.6) ** 2 + (y - 0.5) ** 2) / 0.01)
    for _ in range(12):
        cx, cy, s = rng.random(3)
        depth -= 0.1 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (0.002 + 0.01 * s))
    return jnp.asarray(np.maximum(depth, 0.05), jnp.float32)


def ddx(f):
    return (jnp.roll(f, -1, 1) - jnp.roll(f, 1, 1)) * 0.5


def ddy(f):
    return (jnp.roll(f, -1, 0) - jnp.roll(f, 1, 0)) * 0.5


def tick(depth, k, state):
    eta, u, v = state
    dt = 0.3
    wall = jnp.ones((N, N), jnp.float32).at[0].set(0).at[-1].set(0).at[:, 0].set(0).at[:, -1].set(0)
    drag = 1.0 + 0.002 * jnp.hypot(u, v) / depth
    u = wall * (u - dt * ddx(eta)) / drag
    v = wall * (v - dt * ddy(eta)) / drag
    h = depth + 0.1 * eta
    eta = eta - dt * (ddx(h * u) + ddy(h * v))
    lap = sum(jnp.roll(eta, s, a) for s in (1, -1) for a in (0, 1)) - 4 * eta
    eta = eta + 0.02 * lap
    return eta.at[:, 2].set(jnp.sin(0.02 * k) * jnp.float32(0.5)), u, v


@functools.partial(jax.jit, static_argnums=2, donate_argnums=1)
def advance(depth, state, count, start):
    return jax.lax.fori_loop(start, start + count, functools.partial(tick, depth), state)


def main():
    depth = bathymetry()
    zero = jnp.zeros((N, N), jnp.float32)
    state = (zero, zero + 0, zero * 1)
    gauge = []
    for b in range(BLOCKS):
        state = advance(depth, state, BLOCK, b * BLOCK)
        jax.block_until_ready(state)
        gauge.append(float(state[0][N // 2, int(0.8 * N)]))
        print(f"block {b:2d} gauge {gauge[-1]:+.4f}", flush=True)
    energy = float(jnp.mean(state[0] ** 2 + depth * (state[1] ** 2 + state[2] ** 2)))
    print(f"mean energy {energy:.5f}")


if __name__ == "__main__":
    main()
