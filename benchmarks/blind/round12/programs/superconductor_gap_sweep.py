"""Gap of a two-band superconductor as a function of temperature (self-consistent, JAX on the CPU)."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

POINTS = 6000
CUTOFF = 12.0
ROUNDS = 600
TEMPERATURES = np.linspace(0.02, 1.1, 75)


def quasiparticle(energy, gap):
    return jnp.sqrt(energy * energy + gap * gap + 1e-12)


def kernel(energy, gap, temperature):
    quasi = quasiparticle(energy, gap)
    return jnp.sum(jnp.tanh(quasi / (2.0 * temperature)) / quasi) * (CUTOFF / POINTS)


def free_energy(energy, gap, temperature):
    quasi = quasiparticle(energy, gap)
    occupied = jnp.log1p(jnp.exp(-quasi / temperature))
    return -jnp.sum(quasi - energy + 2.0 * temperature * occupied) * (CUTOFF / POINTS)


@partial(jax.jit, static_argnames=("temperature",))
def solve_gap(gaps, coupling, temperature):
    energy = jnp.linspace(0.0, CUTOFF, POINTS)

    def mix(_, pair):
        pull = jnp.stack([kernel(energy, pair[0], temperature), kernel(energy, pair[1], temperature)])
        return 0.5 * pair + 0.5 * coupling @ (pull * pair)

    gaps = jax.lax.fori_loop(0, ROUNDS, mix, gaps)

    def entropy(t):
        return free_energy(energy, gaps[0], t) + free_energy(energy, gaps[1], t)

    heat = -temperature * jax.grad(jax.grad(entropy))(temperature)
    return gaps, entropy(temperature), heat


def main():
    coupling = jnp.array([[0.33, 0.03], [0.03, 0.24]])
    gaps = jnp.array([1.0, 0.5])
    rows = []
    for temperature in TEMPERATURES:
        gaps, energy, heat = solve_gap(jnp.maximum(gaps, 1e-3), coupling, float(temperature))
        rows.append((float(temperature), float(gaps[0]), float(gaps[1]), float(energy), float(heat)))
    for t, large, small, energy, heat in rows[::15]:
        print(f"T {t:.3f}: gaps {large:.5f} {small:.5f}  F {energy:.5f}  C {heat:.5f}")
    closed = [t for t, large, *_ in rows if large < 0.05]
    print(f"gap closes near T = {closed[0]:.3f}" if closed else "gap stays open")


if __name__ == "__main__":
    main()
