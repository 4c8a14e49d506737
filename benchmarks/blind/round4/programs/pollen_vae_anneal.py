"""Variational autoencoder for pollen fluorescence spectra with a KL warm-up (JAX + optax)."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

BANDS, HIDDEN, LATENT = 500, 128, 12
EPOCHS, WARMUP, BATCH = 50, 30, 256


def spectra(count=6400):
    rng = np.random.default_rng(23)
    grid = np.linspace(0, 1, BANDS)
    peaks = rng.uniform(0.1, 0.9, (8, 3))
    widths = rng.uniform(0.02, 0.08, (8, 3))
    base = np.exp(-((grid - peaks[..., None]) / widths[..., None]) ** 2).sum(1)
    kind = rng.integers(0, 8, count)
    scale = rng.uniform(0.5, 1.5, (count, 1))
    return (scale * base[kind] + 0.05 * rng.standard_normal((count, BANDS))).astype(np.float32)


def dense(key, n_in, n_out):
    return {"w": jax.random.normal(key, (n_in, n_out)) / np.sqrt(n_in), "b": jnp.zeros(n_out)}


def init(key):
    k = jax.random.split(key, 5)
    return {
        "enc": dense(k[0], BANDS, HIDDEN),
        "mu": dense(k[1], HIDDEN, LATENT),
        "logvar": dense(k[2], HIDDEN, LATENT),
        "dec": dense(k[3], LATENT, HIDDEN),
        "out": dense(k[4], HIDDEN, BANDS),
    }


def apply(layer, x):
    return x @ layer["w"] + layer["b"]


def elbo(params, x, key, beta):
    h = jnp.tanh(apply(params["enc"], x))
    mu, logvar = apply(params["mu"], h), apply(params["logvar"], h)
    z = mu + jnp.exp(0.5 * logvar) * jax.random.normal(key, mu.shape)
    recon = apply(params["out"], jnp.tanh(apply(params["dec"], z)))
    rec_loss = jnp.sum((recon - x) ** 2, axis=1)
    kl = 0.5 * jnp.sum(jnp.exp(logvar) + mu**2 - 1 - logvar, axis=1)
    return jnp.mean(rec_loss + beta * kl)


optimizer = optax.adam(1e-3)


@partial(jax.jit, static_argnames=("beta",))
def train_step(params, opt_state, x, key, beta):
    loss, grads = jax.value_and_grad(elbo)(params, x, key, beta)
    updates, opt_state = optimizer.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


@jax.jit
def reconstruct(params, x):
    mu = apply(params["mu"], jnp.tanh(apply(params["enc"], x)))
    return apply(params["out"], jnp.tanh(apply(params["dec"], mu)))


def main():
    data = spectra()
    rng = np.random.default_rng(1)
    key = jax.random.PRNGKey(2)
    params = init(key)
    opt_state = optimizer.init(params)
    for epoch in range(EPOCHS):
        beta = min(1.0, epoch / WARMUP)
        order = rng.permutation(len(data))
        losses = []
        for start in range(0, len(order), BATCH):
            key, sub = jax.random.split(key)
            batch = data[order[start:start + BATCH]]
            params, opt_state, loss = train_step(params, opt_state, batch, sub, beta)
            losses.append(loss)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}: beta {beta:.2f}, loss {float(jnp.mean(jnp.stack(losses))):.2f}")
    probe = data[:500]
    err = float(jnp.mean(jnp.abs(reconstruct(params, probe) - probe)))
    print(f"mean absolute reconstruction error {err:.3f}")


if __name__ == "__main__":
    main()
