"""Density matrix of a spin chain with dephasing, propagated with JAX on the CPU."""
import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

DIM = 768
INNER = 40
BLOCKS = 12


def rotation(rng):
    a = rng.normal(0, 1, (DIM, DIM))
    q, r = np.linalg.qr(a)
    return (q * np.sign(np.diag(r))).astype(np.float32)


def step(carry, noise):
    rho, u = carry
    rho = u @ rho @ u.T
    off = 1.0 - noise * (1.0 - jnp.eye(DIM))
    rho = rho * off
    rho = rho / jnp.trace(rho)
    purity = jnp.sum(rho * rho)
    return (rho, u), purity


@jax.jit
def block(rho, u, noises):
    (rho, _), purity = lax.scan(step, (rho, u), noises)
    return rho, purity


def main():
    rng = np.random.default_rng(12)
    u = jnp.asarray(rotation(rng))
    start = np.zeros((DIM, DIM), dtype=np.float32)
    start[0, 0] = 1.0
    rho = jnp.asarray(start)
    trace = []
    for b in range(BLOCKS):
        noises = jnp.asarray(rng.uniform(0.0, 0.004, INNER).astype(np.float32))
        rho, purity = block(rho, u, noises)
        trace.append(np.asarray(purity))
    purity = np.concatenate(trace)
    print("steps", len(purity), "first purity %.5f" % purity[0])
    print("last purity %.4f" % purity[-1])


if __name__ == "__main__":
    main()
