"""Bank of feedback delay lines over a short click (room response)."""
import numpy as np

RATE = 44100


def room(lines, seconds, block=32):
    rng = np.random.default_rng(0)
    gain = rng.uniform(0.5, 0.7, lines).astype(np.float32)
    state = np.zeros((lines, block), dtype=np.float32)
    state[:, 0] = 1.0
    mix = np.eye(lines, dtype=np.float32) * 0.9 + 0.1 / lines
    energy = 0.0
    blocks = int(seconds * RATE / block)
    for b in range(blocks):
        fed = np.roll(state, 1, axis=1)
        fed *= gain[:, None]
        for _ in range(6):
            fed = 0.5 * fed + 0.5 * np.roll(fed, 3, axis=1)
            fed *= 0.999
        fed[np.abs(fed) < 1e-30] = 0
        state = fed
        energy += float(state[0, 0])
        if b % (blocks // 10) == 0:
            print(f"{b * block / RATE:7.2f} s  energy {energy:.6f}", flush=True)
    return energy


if __name__ == "__main__":
    print(room(lines=1200, seconds=11.0))
