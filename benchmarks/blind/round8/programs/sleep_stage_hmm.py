"""Fit a hidden Markov model of sleep stages to many nights (JAX, Baum-Welch)."""
import jax
import jax.numpy as jnp
import numpy as np

NIGHTS = 64
EPOCHS_PER_NIGHT = 5000
STAGES = 6
BANDS = 8
ITERATIONS = 110


def make_nights(seed=23):
    rng = np.random.default_rng(seed)
    move = np.full((STAGES, STAGES), 0.03 / (STAGES - 1))
    np.fill_diagonal(move, 0.97)
    edges = move.cumsum(axis=1)
    centre = 1.5 * rng.standard_normal((STAGES, BANDS))
    stage = rng.integers(0, STAGES, NIGHTS)
    power = np.empty((EPOCHS_PER_NIGHT, NIGHTS, BANDS), dtype=np.float32)
    for t in range(EPOCHS_PER_NIGHT):
        draw = rng.random(NIGHTS)
        stage = np.minimum((draw[:, None] > edges[stage]).sum(axis=1), STAGES - 1)
        power[t] = centre[stage] + rng.standard_normal((NIGHTS, BANDS))
    return power, centre


def emission(power, mean, var):
    quad = -0.5 * (power ** 2) @ (1 / var).T + power @ (mean / var).T
    const = -0.5 * (mean ** 2 / var + jnp.log(2 * jnp.pi * var)).sum(axis=1)
    log_b = quad + const
    top = log_b.max(axis=2, keepdims=True)
    return jnp.exp(log_b - top), top.sum()


@jax.jit
def em_step(start, move, mean, var, power):
    b, offset = emission(power, mean, var)

    def forward(alpha, b_t):
        raw = (alpha @ move) * b_t
        norm = raw.sum(axis=1, keepdims=True)
        return raw / norm, (raw / norm, norm)

    first = start * b[0]
    norm0 = first.sum(axis=1, keepdims=True)
    first = first / norm0
    _, (rest, norms) = jax.lax.scan(forward, first, b[1:])
    alpha = jnp.concatenate([first[None], rest])

    def backward(beta, inputs):
        b_next, norm_next = inputs
        weighted = b_next * beta / norm_next
        return weighted @ move.T, (beta, weighted)

    last = jnp.ones_like(first)
    beta0, (betas, weighted) = jax.lax.scan(backward, last, (b[1:], norms), reverse=True)
    beta = jnp.concatenate([beta0[None], betas])
    gamma = alpha * beta
    gamma = gamma / gamma.sum(axis=2, keepdims=True)
    pairs = jnp.einsum("tni,tnj->ij", alpha[:-1], weighted) * move
    mass = gamma.sum(axis=(0, 1))
    new_mean = jnp.einsum("tns,tnd->sd", gamma, power) / mass[:, None]
    square = jnp.einsum("tns,tnd->sd", gamma, power ** 2) / mass[:, None]
    new_var = jnp.maximum(square - new_mean ** 2, 1e-3)
    likelihood = offset + jnp.log(norms).sum() + jnp.log(norm0).sum()
    return (gamma[0].mean(axis=0), pairs / pairs.sum(axis=1, keepdims=True),
            new_mean, new_var, likelihood)


def main():
    power, centre = make_nights()
    rng = np.random.default_rng(1)
    power = jnp.asarray(power)
    start = jnp.full(STAGES, 1 / STAGES)
    move = jnp.asarray(0.8 * np.eye(STAGES) + 0.2 / STAGES, dtype=jnp.float32)
    mean = jnp.asarray(centre + 0.5 * rng.standard_normal(centre.shape), jnp.float32)
    var = jnp.full((STAGES, BANDS), 2.0)
    for iteration in range(ITERATIONS):
        start, move, mean, var, likelihood = em_step(start, move, mean, var, power)
        if iteration % 20 == 0 or iteration == ITERATIONS - 1:
            print(f"iteration {iteration} log likelihood {float(likelihood):.0f}")
    print("stay probabilities", np.round(np.diag(np.asarray(move)), 3))


if __name__ == "__main__":
    main()
