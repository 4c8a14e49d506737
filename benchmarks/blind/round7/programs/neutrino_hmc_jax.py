"""Hamiltonian Monte Carlo of a Bayesian network for neutrino energies, in JAX."""
import jax
import jax.numpy as jnp
import numpy as np

EVENTS, HITS, HIDDEN = 3000, 16, 24
LEAPS, BLOCK, BLOCKS, STEP = 12, 100, 36, 2e-3


def neutrino_events():
    rng = np.random.default_rng(71)
    energy = rng.gamma(3.0, 1.0, EVENTS)
    shape = rng.normal(0, 1, (4, HITS))
    hits = np.log1p(energy)[:, None] * shape[0] + np.sqrt(energy)[:, None] * shape[1]
    hits = hits + rng.normal(0, 0.4, (EVENTS, HITS))
    return jnp.asarray(hits, jnp.float32), jnp.asarray(np.log(energy), jnp.float32)


def unpack(theta):
    a = HITS * HIDDEN
    b = a + HIDDEN
    c = b + HIDDEN
    return theta[:a].reshape(HITS, HIDDEN), theta[a:b], theta[b:c], theta[c]


def potential(theta, hits, target):
    w, bias, out, offset = unpack(theta)
    predicted = jnp.tanh(hits @ w + bias) @ out + offset
    return 0.5 * jnp.sum((predicted - target) ** 2) / 0.5 + 0.5 * jnp.sum(theta ** 2)


def make_block(hits, target):
    energy_and_force = jax.value_and_grad(lambda theta: potential(theta, hits, target))

    def leap(state, _):
        theta, momentum, force, _ = state
        momentum = momentum - 0.5 * STEP * force
        theta = theta + STEP * momentum
        level, force = energy_and_force(theta)
        momentum = momentum - 0.5 * STEP * force
        return (theta, momentum, force, level), None

    def transition(state, key):
        theta, force, level = state
        kick, toss = jax.random.split(key)
        momentum = jax.random.normal(kick, theta.shape)
        start = level + 0.5 * jnp.sum(momentum ** 2)
        (new, end_momentum, new_force, new_level), _ = jax.lax.scan(
            leap, (theta, momentum, force, level), None, length=LEAPS)
        end = new_level + 0.5 * jnp.sum(end_momentum ** 2)
        accept = jnp.log(jax.random.uniform(toss)) < start - end
        state = jax.tree.map(lambda n, o: jnp.where(accept, n, o),
                             (new, new_force, new_level), (theta, force, level))
        return state, (accept, state[2])

    return energy_and_force, jax.jit(lambda state, keys: jax.lax.scan(transition, state, keys))


def main():
    hits, target = neutrino_events()
    energy_and_force, block = make_block(hits, target)
    key = jax.random.PRNGKey(71)
    theta = 0.1 * jax.random.normal(key, (HITS * HIDDEN + 2 * HIDDEN + 1,))
    level, force = energy_and_force(theta)
    state = (theta, force, level)
    for number in range(1, BLOCKS + 1):
        key, sub = jax.random.split(key)
        state, (accepted, levels) = block(state, jax.random.split(sub, BLOCK))
        if number % 9 == 0:
            print(f"block {number}: acceptance {float(accepted.mean()):.2f} "
                  f"potential {float(levels.mean()):.1f}")


if __name__ == "__main__":
    main()
