"""Fit masses of a toy planetary system by gradient descent through the integrator."""
import jax
import jax.numpy as jnp

STEPS = 300
BODIES = 5


def accel(pos, mass):
    d = pos[None] - pos[:, None]
    r3 = (jnp.sum(d**2, -1) + 0.05) ** 1.5
    return jnp.sum(mass[None, :, None] * d / r3[..., None], 1)


def simulate(mass, pos, vel):
    dt = 0.005
    for _ in range(STEPS):
        vel = vel + 0.5 * dt * accel(pos, mass)
        pos = pos + dt * vel
        vel = vel + 0.5 * dt * accel(pos, mass)
    return pos


def objective(mass, starts, vels, target):
    end = jax.vmap(lambda p, v: simulate(mass, p, v))(starts, vels)
    return jnp.mean((end - target) ** 2)


if __name__ == "__main__":
    k1, k2 = jax.random.split(jax.random.PRNGKey(1))
    starts = jax.random.normal(k1, (64, BODIES, 3))
    vels = 0.3 * jax.random.normal(k2, (64, BODIES, 3))
    truth = jnp.array([1.0, 0.5, 0.2, 0.8, 0.1])
    target = jax.jit(jax.vmap(lambda p, v: simulate(truth, p, v)))(starts, vels)
    grad = jax.jit(jax.value_and_grad(objective))
    mass = jnp.ones(BODIES) * 0.4
    for it in range(60):
        val, g = grad(mass, starts, vels, target)
        mass = mass - 0.05 * g
        if it % 10 == 0:
            print(it, float(val), flush=True)
    print("masses", mass)
