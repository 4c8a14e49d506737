"""TD(lambda) value of odour-guided search by a dung beetle in a square arena."""
import numpy as np
import torch
from torch import nn

TILINGS = 16
SIDE = 96
STEPS = 14000
GAMMA, LAMBDA, RATE = 0.95, 0.9, 0.02
SOURCE = np.array([61.0, 27.0])


def active_tiles(position):
    offsets = np.arange(TILINGS) / TILINGS
    row = np.minimum((position[0] + offsets).astype(np.int64), SIDE - 1)
    col = np.minimum((position[1] + offsets).astype(np.int64), SIDE - 1)
    return torch.from_numpy(np.arange(TILINGS) * SIDE * SIDE + row * SIDE + col)


def walk(rng):
    position = rng.uniform(0, SIDE, 2)
    heading = rng.uniform(0, 2 * np.pi)
    for step in range(STEPS):
        if step % 30 == 29:  # the beetle is carried to a new place
            position = rng.uniform(0, SIDE, 2)
        heading += rng.normal(0, 0.4)
        position = position + 2.0 * np.array([np.cos(heading), np.sin(heading)])
        position = np.abs(position)
        position = np.where(position > SIDE - 1e-3, 2 * SIDE - 2e-3 - position, position)
        distance = np.hypot(*(position - SOURCE))
        yield position, float(np.exp(-distance / 12.0))


def learn_values(rng):
    weights = torch.zeros(TILINGS * SIDE * SIDE)
    trace = torch.zeros_like(weights)
    errors = []
    track = walk(rng)
    position, odour = next(track)
    tiles = active_tiles(position)
    for position, odour in track:
        following = active_tiles(position)
        delta = odour + GAMMA * weights[following].sum() - weights[tiles].sum()
        trace.mul_(GAMMA * LAMBDA)
        trace[tiles] = 1.0
        weights.add_(trace, alpha=RATE / TILINGS * float(delta))
        errors.append(float(delta))
        tiles = following
    return weights, np.array(errors)


def smooth_map(weights):
    values = weights.view(TILINGS, SIDE, SIDE).sum(0).flatten()
    grid = torch.cartesian_prod(torch.linspace(-1, 1, SIDE), torch.linspace(-1, 1, SIDE))
    net = nn.Sequential(nn.Linear(2, 192), nn.Tanh(), nn.Linear(192, 192), nn.Tanh(), nn.Linear(192, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(70):
        loss = ((net(grid).squeeze(1) - values) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    weights, errors = learn_values(np.random.default_rng(5))
    print(f"mean |delta| first 1000: {np.abs(errors[:1000]).mean():.4f}")
    print(f"mean |delta| last 1000:  {np.abs(errors[-1000:]).mean():.4f}")
    print(f"map fit error: {smooth_map(weights):.5f}")


if __name__ == "__main__":
    main()
