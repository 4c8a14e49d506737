"""Synchrony of a swarm of fireflies for a range of coupling strengths."""
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

FLIES = 220
STEPS = 640
COUPLINGS = 44
DT = 0.05


def place_swarm(seed):
    rng = np.random.default_rng(seed)
    xy = rng.uniform(0.0, 10.0, (FLIES, 2))
    gap = np.hypot(xy[:, None, 0] - xy[None, :, 0], xy[:, None, 1] - xy[None, :, 1])
    sight = np.exp(-gap / 3.0)
    np.fill_diagonal(sight, 0.0)
    rhythm = rng.normal(1.0, 0.12, FLIES)
    phase = rng.uniform(0.0, 2 * np.pi, FLIES)
    return (jnp.asarray(sight / sight.sum(axis=1, keepdims=True), jnp.float32),
            jnp.asarray(rhythm, jnp.float32), jnp.asarray(phase, jnp.float32))


def velocity(phase, rhythm, sight, coupling):
    difference = phase[None, :] - phase[:, None]
    flash = jnp.sin(difference) + 0.2 * jnp.sin(2.0 * difference)
    return rhythm + coupling * (sight * flash).sum(axis=1)


@partial(jax.jit, static_argnames=("coupling",))
def swarm_night(phase, rhythm, sight, coupling):
    def step(state, _):
        k1 = velocity(state, rhythm, sight, coupling)
        k2 = velocity(state + 0.5 * DT * k1, rhythm, sight, coupling)
        k3 = velocity(state + 0.5 * DT * k2, rhythm, sight, coupling)
        k4 = velocity(state + DT * k3, rhythm, sight, coupling)
        state = state + DT / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
        order = jnp.abs(jnp.exp(1j * state).mean())
        return state, order

    return jax.lax.scan(step, phase, None, length=STEPS, unroll=4)


def main():
    sight, rhythm, phase = place_swarm(42)
    strengths = np.linspace(0.05, 1.2, COUPLINGS)
    curve = []
    for strength in strengths:
        last, order = swarm_night(phase, rhythm, sight, float(strength))
        late = np.asarray(order[STEPS // 2:])
        curve.append((strength, late.mean(), late.std(), float(last.mean())))
    curve = np.array(curve)
    onset = curve[np.argmax(curve[:, 1] > 0.5), 0]
    print(f"{FLIES} fireflies, {COUPLINGS} couplings, {STEPS} steps each")
    print(f"order at the weakest coupling {curve[0, 1]:.3f}, at the strongest {curve[-1, 1]:.3f}")
    print(f"order passes one half at coupling {onset:.3f}")


if __name__ == "__main__":
    main()
