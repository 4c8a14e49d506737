"""Growth of a slime-mould network: chemotaxis on a grid with food spots."""
import logging
import os
import tempfile

import numpy as np

logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
log = logging.getLogger("mould")
SIZE = 200
STEPS = 11000


def food_spots(rng):
    food = np.zeros((SIZE, SIZE))
    for r, c in rng.integers(15, SIZE - 15, (12, 2)):
        food[r - 3:r + 4, c - 3:c + 4] = 1.0
    return food


def spread(a):
    out = -4.0 * a
    out[1:] += a[:-1]
    out[:-1] += a[1:]
    out[:, 1:] += a[:, :-1]
    out[:, :-1] += a[:, 1:]
    return out


def step(body, scent, food):
    scent += 0.20 * spread(scent) + 0.02 * food - 0.004 * scent
    pull = body * scent
    body += 0.10 * spread(body) - 0.05 * spread(pull) + 0.003 * pull * (1.0 - body) - 0.0006 * body
    np.clip(body, 0.0, 2.0, out=body)


def main():
    rng = np.random.default_rng(31)
    folder = tempfile.mkdtemp(prefix="mould_")
    food = food_spots(rng)
    scent = np.zeros_like(food)
    body = 0.05 * rng.random((SIZE, SIZE))
    body[SIZE // 2 - 6:SIZE // 2 + 6, SIZE // 2 - 6:SIZE // 2 + 6] = 1.0

    for number in range(1, STEPS + 1):
        step(body, scent, food)
        log.debug(f"step {number}\nbody:\n{np.array2string(body, precision=4)}\n"
                  f"scent:\n{np.array2string(scent, precision=4)}")
        if number % 40 == 0:
            np.savez_compressed(os.path.join(folder, "restart.npz"), body=body, scent=scent,
                                food=food, number=number)
        if number % 2000 == 0:
            log.info("step %d  mass %.1f  covered %.3f", number, body.sum(), (body > 0.2).mean())

    reached = [bool(body[r, c] > 0.1) for r, c in np.argwhere(food > 0)[::49]]
    print("food reached:", sum(reached), "of", len(reached))
    print("final mass: %.2f" % body.sum())


if __name__ == "__main__":
    main()
