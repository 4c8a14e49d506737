"""Evolve a helmsman that tacks a sailboat upwind (evolution strategy)."""
import numpy as np

PAIRS = 256
STEPS = 180
GENERATIONS = 110
INPUTS = 7
HIDDEN = 20
SIGMA = 0.08
RATE = 0.06
SIZE = INPUTS * HIDDEN + HIDDEN + HIDDEN * 2 + 2


def unpack(genes):
    count = len(genes)
    cut = INPUTS * HIDDEN
    first = genes[:, :cut].reshape(count, INPUTS, HIDDEN)
    bias = genes[:, cut:cut + HIDDEN]
    second = genes[:, cut + HIDDEN:-2].reshape(count, HIDDEN, 2)
    return first, bias, second, genes[:, -2:]


def sail(genes, wind):
    """Sail all boats at once; wind holds the direction at each step."""
    first, bias, second, shift = unpack(genes)
    count = len(genes)
    place = np.zeros((count, 2), dtype=np.float32)
    heading = np.full(count, 0.8, dtype=np.float32)
    speed = np.zeros(count, dtype=np.float32)
    trim = np.zeros(count, dtype=np.float32)
    for step in range(STEPS):
        angle = heading - wind[step]
        view = np.stack([np.cos(angle), np.sin(angle), speed, trim, place[:, 0] / 20,
                         np.tanh(place[:, 1] / 50), np.full(count, step / STEPS)],
                        axis=1).astype(np.float32)
        h = np.tanh((view[:, None] @ first)[:, 0] + bias)
        act = np.tanh((h[:, None] @ second)[:, 0] + shift)
        heading += 0.25 * act[:, 0] * (0.2 + speed)
        trim += 0.2 * (act[:, 1] - trim)
        attack = np.abs(np.sin(angle))
        blocked = np.cos(angle) > 0.75
        best = 1.2 * attack - 0.5
        drive = np.where(blocked, -0.1, attack * np.exp(-4 * (trim - best) ** 2))
        speed = np.clip(0.9 * speed + 0.15 * drive, 0, 1.5).astype(np.float32)
        place[:, 0] += speed * np.sin(heading)
        place[:, 1] += speed * np.cos(heading)
    return place[:, 1] - 2.0 * np.maximum(np.abs(place[:, 0]) - 20, 0)


def ranks(values):
    order = np.empty(len(values))
    order[values.argsort()] = np.arange(len(values))
    return order / (len(values) - 1) - 0.5


def main():
    rng = np.random.default_rng(43)
    centre = 0.1 * rng.standard_normal(SIZE).astype(np.float32)
    velocity = np.zeros(SIZE, dtype=np.float32)
    for generation in range(GENERATIONS):
        wind = 0.02 * np.cumsum(rng.standard_normal(STEPS)).astype(np.float32)
        noise = rng.standard_normal((PAIRS, SIZE), dtype=np.float32)
        genes = np.concatenate([centre + SIGMA * noise, centre - SIGMA * noise])
        gain = sail(genes, wind)
        weight = ranks(gain)
        slope = (weight[:PAIRS] - weight[PAIRS:]) @ noise / (PAIRS * SIGMA)
        velocity = 0.8 * velocity + RATE * slope.astype(np.float32)
        centre = centre + velocity
        if generation % 25 == 0 or generation == GENERATIONS - 1:
            print(f"generation {generation} mean {gain.mean():.2f} best {gain.max():.2f}")
    calm = np.zeros(STEPS, dtype=np.float32)
    print(f"upwind distance in steady wind {sail(centre[None], calm)[0]:.2f}")


if __name__ == "__main__":
    main()
