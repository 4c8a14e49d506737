"""Quantum walk on a line with static disorder: spreading and entropy, over many realisations."""
import jax
import jax.numpy as jnp
import numpy as np

REALISATIONS = 2_000
STEPS = 130
DISORDER = 0.35


@jax.jit
def step(state, phase):
    """Toss the coin at each site, then move: one component to the left, the other to the right."""
    turn = jnp.exp(1j * phase)
    left = turn * (state[..., 0] + state[..., 1]) / jnp.sqrt(2.0)
    right = (state[..., 0] - state[..., 1]) / jnp.sqrt(2.0)
    left = jnp.pad(left, ((0, 0), (0, 2)))
    right = jnp.pad(right, ((0, 0), (2, 0)))
    return jnp.stack([left, right], axis=-1)


@jax.jit
def describe(state):
    """Mean over the realisations of the variance of the position and of the entropy of the coin."""
    weight = jnp.abs(state) ** 2
    site = jnp.arange(state.shape[1]) - state.shape[1] // 2
    probability = weight.sum(axis=-1)
    mean = (probability * site).sum(axis=1)
    variance = (probability * site ** 2).sum(axis=1) - mean ** 2
    rho_00 = weight[..., 0].sum(axis=1)
    rho_01 = (state[..., 0] * jnp.conj(state[..., 1])).sum(axis=1)
    root = jnp.sqrt((rho_00 - 0.5) ** 2 + jnp.abs(rho_01) ** 2)
    plus, minus = 0.5 + root, jnp.maximum(0.5 - root, 1e-9)
    entropy = -plus * jnp.log2(plus) - minus * jnp.log2(minus)
    return variance.mean(), entropy.mean()


def main():
    rng = np.random.default_rng(64)
    width = 2 * STEPS + 1
    phases = jnp.asarray(rng.uniform(-np.pi, np.pi, (REALISATIONS, width)) * DISORDER, dtype=jnp.float32)
    state = jnp.full((REALISATIONS, 1, 2), 1.0 / np.sqrt(2.0), dtype=jnp.complex64)
    state = state.at[..., 1].multiply(1j)

    variances, entropies = [], []
    for t in range(STEPS):
        state = step(state, phases[:, STEPS - t:STEPS + t + 1])
        variance, entropy = describe(state)
        variances.append(variance)
        entropies.append(entropy)

    variances = np.array(jnp.stack(variances))
    entropies = np.array(jnp.stack(entropies))
    times = np.arange(1, STEPS + 1)
    late = times > STEPS // 3
    exponent = np.polyfit(np.log(times[late]), np.log(variances[late]), 1)[0]
    print("realisations", REALISATIONS, "steps", STEPS)
    print("variance at the end %.1f, exponent %.2f" % (variances[-1], exponent))
    print("coin entropy %.3f" % entropies[-20:].mean())


if __name__ == "__main__":
    main()
