"""Mineral fractions of mantle xenoliths from Raman spectra, with flax and optax."""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from scipy.signal import savgol_filter

SPECTRA, BANDS, MINERALS = 5000, 512, 5


def raw_spectra(rng):
    axis = np.arange(BANDS)
    peaks = rng.uniform(30, BANDS - 30, (MINERALS, 4))
    pure = np.exp(-0.5 * ((axis - peaks[..., None]) / 6.0) ** 2).sum(1)
    fractions = rng.dirichlet(np.ones(MINERALS), SPECTRA)
    slope = rng.uniform(0, 2, (SPECTRA, 1)) * axis / BANDS
    spectra = fractions @ pure + slope + rng.normal(0, 0.08, (SPECTRA, BANDS))
    return spectra, fractions.astype(np.float32)


def correct(spectrum):
    smooth = savgol_filter(spectrum, 9, 2)
    smooth = smooth - np.linspace(smooth[:20].mean(), smooth[-20:].mean(), BANDS)
    return (smooth - smooth.mean()) / smooth.std()


def collect(spectra):
    bank = jnp.zeros((SPECTRA, BANDS))
    for row, spectrum in enumerate(spectra):
        bank = bank.at[row].set(correct(spectrum))
    return bank


class Unmixer(nn.Module):
    @nn.compact
    def __call__(self, x):
        for width in (256, 128):
            x = nn.gelu(nn.Dense(width)(x))
        return nn.log_softmax(nn.Dense(MINERALS)(x))


def main():
    rng = np.random.default_rng(16)
    spectra, fractions = raw_spectra(rng)
    bank = collect(spectra)
    fractions = jnp.asarray(fractions)
    model = Unmixer()
    params = model.init(jax.random.PRNGKey(0), bank[:2])
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        def loss(p):
            return -(y * model.apply(p, x)).sum(-1).mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, value

    for epoch in range(12):
        order = rng.permutation(SPECTRA)
        for first in range(0, SPECTRA, 100):
            rows = order[first:first + 100]
            params, state, value = step(params, state, bank[rows], fractions[rows])
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: cross entropy {float(value):.4f}")
    error = np.abs(np.exp(model.apply(params, bank)) - fractions).mean()
    print(f"mean error of a fraction {error:.4f}")


if __name__ == "__main__":
    main()
