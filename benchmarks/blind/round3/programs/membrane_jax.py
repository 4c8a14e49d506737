"""Vibrating membrane with a moving driver; snapshots are kept for the modal analysis at the end."""
import jax
import jax.numpy as jnp
import numpy as np

SIDE, FRAMES, SUBSTEPS = 224, 200, 400
C2DT2, DAMP = 0.2, 0.0015


def laplacian(u):
    p = jnp.pad(u, 1)
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u


@jax.jit
def advance(u, before, tick):
    yy, xx = jnp.mgrid[0:SIDE, 0:SIDE]

    def one(carry, k):
        u, before = carry
        t = (tick * SUBSTEPS + k).astype(jnp.float32)
        cy = SIDE * (0.5 + 0.25 * jnp.sin(0.002 * t))
        cx = SIDE * (0.5 + 0.25 * jnp.cos(0.003 * t))
        push = 0.02 * jnp.sin(0.12 * t) * jnp.exp(-((yy - cy) ** 2 + (xx - cx) ** 2) / 40.0)
        stiff = C2DT2 * laplacian(u) - 0.05 * u ** 3
        nxt = (2 - DAMP) * u - (1 - DAMP) * before + stiff + push
        return (nxt, u), None

    (u, before), _ = jax.lax.scan(one, (u, before), jnp.arange(SUBSTEPS))
    return u, before


@jax.jit
def modes(film):
    flat = film.reshape(film.shape[0], -1)
    flat = flat - flat.mean(0)
    gram = flat @ flat.T
    return jnp.linalg.eigvalsh(gram)[::-1]


def main():
    u = jnp.zeros((SIDE, SIDE))
    before = u
    film = jnp.zeros((FRAMES, SIDE, SIDE))
    for frame in range(FRAMES):
        u, before = advance(u, before, frame)
        film = film.at[frame].set(u)
    energy = np.asarray(modes(film))
    share = energy / energy.sum()
    print("energy in the first five modes:", " ".join(f"{s:.3f}" for s in share[:5]))


if __name__ == "__main__":
    main()
