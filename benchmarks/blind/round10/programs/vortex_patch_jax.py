"""Motion of two patches of point vortices that merge, integrated with JAX."""
import jax
import jax.numpy as jnp
import numpy as np

VORTICES = 760
CHUNKS = 10
STEPS = 300
DT = 0.01
CORE = 0.05


def patches():
    rng = np.random.default_rng(1858)
    half = VORTICES // 2
    radius = 0.8 * np.sqrt(rng.random(VORTICES))
    angle = 2 * np.pi * rng.random(VORTICES)
    x = radius * np.cos(angle) + np.where(np.arange(VORTICES) < half, -1.1, 1.1)
    y = radius * np.sin(angle)
    return jnp.asarray(np.stack([x, y]), jnp.float32)


def velocity(place):
    dx = place[0][:, None] - place[0][None, :]
    dy = place[1][:, None] - place[1][None, :]
    weight = 1.0 / (dx * dx + dy * dy + CORE ** 2)
    scale = 8.0 / VORTICES
    return scale * jnp.stack([-(dy * weight).sum(axis=1), (dx * weight).sum(axis=1)])


@jax.jit
def advance(place):
    def step(p, _):
        k1 = velocity(p)
        k2 = velocity(p + 0.5 * DT * k1)
        k3 = velocity(p + 0.5 * DT * k2)
        k4 = velocity(p + DT * k3)
        return p + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.lax.scan(step, place, None, length=STEPS)[0]


@jax.jit
def invariants(place):
    centre = place.mean(axis=1)
    angular = ((place - centre[:, None]) ** 2).sum(axis=0).mean()
    half = VORTICES // 2
    gap = jnp.linalg.norm(place[:, :half].mean(axis=1) - place[:, half:].mean(axis=1))
    return centre, angular, gap


def main():
    place = patches()
    log = []
    for chunk in range(CHUNKS):
        place = advance(place)
        centre, angular, gap = invariants(place)
        log.append((float(centre[0]), float(angular), float(gap)))
    print(f"{VORTICES} vortices, {CHUNKS * STEPS} steps")
    print(f"angular impulse {log[0][1]:.4f} at first, {log[-1][1]:.4f} at last")
    print(f"distance of the patches {log[0][2]:.3f} at first, {log[-1][2]:.3f} at last")


if __name__ == "__main__":
    main()
