"""Metropolis sampling of one XY lattice per temperature; sweeps follow each other and cannot be run side by side."""
import jax
import jax.numpy as jnp
import numpy as np

L, SWEEPS, BLOCKS = 192, 150, 9
BETAS = np.linspace(0.7, 1.3, BLOCKS)
PARITY = (np.add.outer(np.arange(L), np.arange(L)) % 2).astype(bool)


def half_sweep(theta, key, beta, mask):
    k1, k2 = jax.random.split(key)
    trial = theta + jax.random.uniform(k1, theta.shape, minval=-1.5, maxval=1.5)

    def local(t):
        e = 0.0
        for axis in (0, 1):
            for s in (1, -1):
                e -= jnp.cos(t - jnp.roll(theta, s, axis))
        return e

    accept = jax.random.uniform(k2, theta.shape) < jnp.exp(-beta * (local(trial) - local(theta)))
    return jnp.where(mask & accept, trial, theta)


@jax.jit
def run_block(theta, key, beta):
    def sweep(carry, k):
        theta = carry
        a, b = jax.random.split(k)
        theta = half_sweep(theta, a, beta, PARITY)
        theta = half_sweep(theta, b, beta, ~PARITY)
        energy = -(jnp.cos(theta - jnp.roll(theta, 1, 0)) + jnp.cos(theta - jnp.roll(theta, 1, 1))).mean()
        m = jnp.hypot(jnp.cos(theta).mean(), jnp.sin(theta).mean())
        return theta, (energy, m)

    return jax.lax.scan(sweep, theta, jax.random.split(key, SWEEPS))


def main():
    key = jax.random.PRNGKey(20)
    theta = jnp.zeros((L, L))
    for beta in BETAS[::-1]:
        key, sub = jax.random.split(key)
        theta, (energy, m) = run_block(theta, sub, beta)
        e, mag = np.asarray(energy[SWEEPS // 3:]), np.asarray(m[SWEEPS // 3:])
        print(f"beta {beta:.2f}: energy {e.mean():.3f}  magnetisation {mag.mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
