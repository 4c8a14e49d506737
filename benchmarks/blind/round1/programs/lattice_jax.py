"""Phi-4 lattice field, HMC. The kernel is compiled once at the start."""
import jax
import jax.numpy as jnp
from jax import lax

L = 160


def action(phi):
    n = sum((phi - jnp.roll(phi, 1, a)) ** 2 for a in (0, 1))
    return jnp.sum(0.5 * n + 0.1 * phi**2 + 0.05 * phi**4)


force = jax.grad(action)


@jax.jit
def trajectory(key, phi):
    k1, k2 = jax.random.split(key)
    p = jax.random.normal(k1, phi.shape)
    h0 = action(phi) + 0.5 * jnp.sum(p**2)

    def leap(c, _):
        q, p = c
        p = p - 0.01 * force(q)
        q = q + 0.02 * p
        p = p - 0.01 * force(q)
        return (q, p), None

    (q, p), _ = lax.scan(leap, (phi, p), None, length=50)
    h1 = action(q) + 0.5 * jnp.sum(p**2)
    ok = jnp.log(jax.random.uniform(k2)) < h0 - h1
    return jnp.where(ok, q, phi), ok


phi = jnp.zeros((L, L))
key = jax.random.PRNGKey(0)
for t in range(1100):
    key, k = jax.random.split(key)
    phi, ok = trajectory(k, phi)
    if t % 100 == 0:
        print(t, float(jnp.mean(phi**2)), bool(ok), flush=True)
