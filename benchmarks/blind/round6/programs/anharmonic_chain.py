"""Hamiltonian Monte Carlo for an anharmonic chain of oscillators, one long Markov chain."""
import jax
import jax.numpy as jnp
import numpy as np

SITES = 96
BLOCKS = 8
DRAWS = 14_000
LEAPS = 24
STEP = 0.11


def action(x):
    kinetic = 0.5 * jnp.sum((x - jnp.roll(x, 1)) ** 2)
    return kinetic + jnp.sum(0.25 * x ** 4 - 0.4 * x ** 2)


force = jax.grad(action)


def leapfrog(state, _):
    x, p = state
    x = x + STEP * p
    return (x, p - STEP * force(x)), None


def draw(state, _):
    x, key = state
    key, k1, k2 = jax.random.split(key, 3)
    p = jax.random.normal(k1, x.shape)
    half = p - 0.5 * STEP * force(x)
    (xn, pn), _ = jax.lax.scan(leapfrog, (x, half), None, length=LEAPS)
    pn = pn + 0.5 * STEP * force(xn)
    before = action(x) + 0.5 * jnp.sum(p * p)
    after = action(xn) + 0.5 * jnp.sum(pn * pn)
    accept = jnp.log(jax.random.uniform(k2)) < before - after
    x = jnp.where(accept, xn, x)
    return (x, key), (jnp.mean(x * x), jnp.mean(x * jnp.roll(x, 8)), accept)


@jax.jit
def block(state):
    return jax.lax.scan(draw, state, None, length=DRAWS)


def autocorrelation(series):
    centred = series - series.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    corr = np.fft.irfft(power)[:len(centred)]
    corr /= corr[0]
    window = int(np.argmax(corr < 0.05)) or len(corr)
    return 1 + 2 * corr[1:window].sum()


def main():
    key = jax.random.PRNGKey(21)
    state = (0.1 * jax.random.normal(key, (SITES,)), key)
    squares, far = [], []
    for k in range(BLOCKS):
        state, (x2, corr, accepted) = block(state)
        squares.append(np.asarray(x2, dtype=np.float64))
        far.append(np.asarray(corr, dtype=np.float64))
        print("block %d  <x2> %.4f  acceptance %.3f" % (k, squares[-1].mean(), float(accepted.mean())))
    squares = np.concatenate(squares[1:])
    print("<x2> %.4f  correlation at 8 sites %.4f" % (squares.mean(), np.concatenate(far[1:]).mean()))
    print("autocorrelation time %.2f" % autocorrelation(squares))


if __name__ == "__main__":
    main()
