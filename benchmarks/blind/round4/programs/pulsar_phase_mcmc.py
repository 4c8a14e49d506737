"""Posterior of a pulsar's spin parameters from arrival-time residuals: one long adaptive chain in JAX."""
import jax
import jax.numpy as jnp
import numpy as np

BLOCKS, BLOCK = 26, 40_000
NAMES = ["offset", "slope", "amplitude", "period", "phase"]


def residuals(count=500):
    rng = np.random.default_rng(73)
    day = np.sort(rng.uniform(0, 400, count))
    clean = 1.2 + 0.004 * day + 3.0 * np.sin(2 * np.pi * day / 67.0 + 0.8)
    return jnp.asarray(day, jnp.float32), jnp.asarray(clean + 0.8 * rng.standard_normal(count), jnp.float32)


DAY, TIMING = residuals()


def log_posterior(theta):
    offset, slope, amplitude, period, phase = theta
    model = offset + slope * DAY + amplitude * jnp.sin(2 * jnp.pi * DAY / period + phase)
    chi2 = jnp.sum(((TIMING - model) / 0.8) ** 2)
    prior = (offset / 5) ** 2 + (slope / 0.1) ** 2 + ((amplitude - 3) / 2) ** 2 + ((period - 66) / 3) ** 2
    return -0.5 * (chi2 + prior)


@jax.jit
def run_block(state, step_size):
    def move(carry, _):
        key, theta, here = carry
        key, k1, k2 = jax.random.split(key, 3)
        proposal = theta + step_size * jax.random.normal(k1, theta.shape)
        there = log_posterior(proposal)
        accept = jnp.log(jax.random.uniform(k2)) < there - here
        theta = jnp.where(accept, proposal, theta)
        return (key, theta, jnp.where(accept, there, here)), (theta, accept)

    return jax.lax.scan(move, state, None, length=BLOCK)


def main():
    theta = jnp.array([0.0, 0.0, 2.0, 66.0, 0.5])
    state = (jax.random.PRNGKey(12), theta, log_posterior(theta))
    step = np.array([0.05, 0.0003, 0.05, 0.1, 0.02], np.float32)
    kept = []
    for block in range(BLOCKS):
        state, (draws, accepted) = run_block(state, step)
        rate = float(accepted.mean())
        if block < 8:  # adapt during burn-in only
            step = step * np.float32(np.exp(rate - 0.27))
        else:
            kept.append(np.asarray(draws[::50]))
        if block % 10 == 9:
            print(f"block {block + 1}: acceptance {rate:.2f}", flush=True)
    draws = np.concatenate(kept)
    for name, mean, sd in zip(NAMES, draws.mean(0), draws.std(0)):
        print(f"{name:10s} {mean:9.3f} +- {sd:.3f}")


if __name__ == "__main__":
    main()
