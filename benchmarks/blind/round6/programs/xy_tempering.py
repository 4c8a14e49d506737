"""Parallel tempering of the two-dimensional XY model with a ladder that adapts itself."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

SIZE = 192
REPLICAS = 8
ROUNDS = 9
SWEEPS = 30


def site_energy(theta, neighbours):
    return -sum(jnp.cos(theta - n) for n in neighbours)


def neighbours_of(theta):
    return [jnp.roll(theta, 1, 0), jnp.roll(theta, -1, 0), jnp.roll(theta, 1, 1), jnp.roll(theta, -1, 1)]


def total_energy(theta):
    return -(jnp.cos(theta - jnp.roll(theta, 1, 0)) + jnp.cos(theta - jnp.roll(theta, 1, 1))).sum()


@partial(jax.jit, static_argnames=("beta", "sweeps"))
def metropolis(theta, key, beta, sweeps):
    rows, cols = jnp.indices(theta.shape)
    colour = (rows + cols) % 2

    def half(theta, key, parity):
        k1, k2 = jax.random.split(key)
        trial = theta + 1.5 * (jax.random.uniform(k1, theta.shape) - 0.5)
        around = neighbours_of(theta)
        gain = site_energy(trial, around) - site_energy(theta, around)
        accept = jax.random.uniform(k2, theta.shape) < jnp.exp(-beta * gain)
        return jnp.where(accept & (colour == parity), trial, theta)

    def sweep(step, state):
        theta, key = state
        key, even, odd = jax.random.split(key, 3)
        return half(half(theta, even, 0), odd, 1), key

    theta, _ = jax.lax.fori_loop(0, sweeps, sweep, (theta, key))
    return theta, total_energy(theta)


def adapt(betas, energies):
    gaps = np.abs(np.diff(energies)) * np.diff(betas)
    weights = 1.0 / np.sqrt(1e-3 + gaps / gaps.mean())
    widths = np.diff(betas) * (1 + 0.2 * (weights / weights.mean() - 1))
    ladder = betas[0] + np.concatenate([[0.0], np.cumsum(widths)])
    return betas[0] + (ladder - betas[0]) * (betas[-1] - betas[0]) / (ladder[-1] - betas[0])


def main():
    key = jax.random.PRNGKey(5)
    rng = np.random.default_rng(5)
    betas = np.linspace(0.3, 1.6, REPLICAS)
    thetas = [jnp.zeros((SIZE, SIZE)) for _ in betas]
    swaps = 0
    for turn in range(ROUNDS):
        energies = np.zeros(REPLICAS)
        for r in range(REPLICAS):
            key, sub = jax.random.split(key)
            thetas[r], energy = metropolis(thetas[r], sub, float(betas[r]), SWEEPS)
            energies[r] = float(energy)
        for r in range(REPLICAS - 1):
            if np.log(rng.random()) < (betas[r + 1] - betas[r]) * (energies[r + 1] - energies[r]):
                thetas[r], thetas[r + 1] = thetas[r + 1], thetas[r]
                swaps += 1
        betas = adapt(betas * (1 + 0.001 * turn), energies)
    print("ladder", np.round(betas, 3))
    print("energy per site", np.round(energies / SIZE ** 2, 3))
    print("accepted swaps", swaps)


if __name__ == "__main__":
    main()
