"""Drag of a low satellite from range readings: a Kalman filter over many epochs (JAX, CPU)."""
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

EPOCHS = 1_200_000
PARTS = 4
STEP = 0.5


def truth():
    rng = np.random.default_rng(77)
    density = np.cumsum(rng.normal(0.0, 2e-5, EPOCHS)) * 0.1
    speed = np.cumsum(-density * STEP * 1e-3)
    height = np.cumsum(speed * STEP * 1e-2)
    return height + rng.normal(0.0, 0.02, EPOCHS), density


def model():
    move = np.eye(6)
    move[0, 1] = STEP * 1e-2
    move[1, 2] = -STEP * 1e-3
    move[3, 3] = move[4, 4] = np.cos(0.011)
    move[3, 4], move[4, 3] = np.sin(0.011), -np.sin(0.011)
    move[5, 5] = 0.9999
    noise = np.diag([1e-10, 1e-9, 4e-12, 1e-9, 1e-9, 1e-8])
    look = np.array([1.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    return jnp.asarray(move), jnp.asarray(noise), jnp.asarray(look)


@jax.jit
def run_filter(start, readings):
    move, noise, look = model()

    def epoch(carry, reading):
        state, spread = carry
        state = move @ state
        spread = move @ spread @ move.T + noise
        seen = look @ spread
        variance = seen @ look + 4e-4
        gain = seen / variance
        surprise = reading - look @ state
        state = state + gain * surprise
        spread = spread - jnp.outer(gain, seen)
        return (state, 0.5 * (spread + spread.T)), (state[2], surprise * surprise / variance)

    return jax.lax.scan(epoch, start, readings)


def main():
    readings, density = truth()
    carry = (jnp.zeros(6), jnp.eye(6) * 1e-2)
    drag, score = [], []
    for part in np.split(readings, PARTS):
        carry, (value, chi) = run_filter(carry, jnp.asarray(part))
        drag.append(np.asarray(value))
        score.append(float(chi.mean()))
    drag = np.concatenate(drag)
    half = EPOCHS // 2
    print("consistency by part", np.round(score, 4).tolist())
    print(f"drag state mean {drag[half:].mean():.6e}, scatter {drag[half:].std():.6e}")
    print(f"true density mean {density[half:].mean():.6e}; last state {np.round(np.asarray(carry[0]), 5).tolist()}")


if __name__ == "__main__":
    main()
