"""A planetary rover learns when to drive, charge or sample; replay by priority."""
import random

import numpy as np
import torch
from torch import nn

CAPACITY = 20000
BATCH = 64
ALPHA = 0.6
ACTIONS = 4


class Terrain:
    """State: battery, sun, slope, dust, distance, samples and two sensors."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.state = self.rng.uniform(0, 1, 8).astype(np.float32)

    def step(self, action):
        s = self.state
        s[1] = (s[1] + 0.03) % 1.0
        s[2:4] = np.clip(s[2:4] + 0.1 * self.rng.standard_normal(2), 0, 1)
        gain = [0.4 * (1 - s[2]), 0.0, 0.8 * s[3], -0.05][action]
        s[0] += [-0.08, 0.15 * s[1], -0.12, 0.01][action]
        reward = gain if s[0] > 0 else -1.0
        s[0] = min(max(s[0], 0.0), 1.0)
        s[6:] = self.rng.uniform(0, 1, 2)
        return s.copy(), float(reward)


class ReplayMemory:
    def __init__(self):
        self.items = []
        self.priorities = []

    def push(self, item):
        if len(self.items) >= CAPACITY:
            self.items.pop(0)
            self.priorities.pop(0)
        self.items.append(item)
        self.priorities.append(max(self.priorities, default=1.0))

    def sample(self):
        weights = np.array(self.priorities) ** ALPHA
        weights = weights / weights.sum()
        rows = np.random.choice(len(self.items), BATCH, p=weights)
        batch = [self.items[i] for i in rows]
        return rows, batch

    def update(self, rows, errors):
        for i, error in zip(rows, errors):
            self.priorities[i] = float(error) + 1e-3


def main():
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    world = Terrain(3)
    net = nn.Sequential(nn.Linear(8, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(),
                        nn.Linear(96, ACTIONS))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    memory = ReplayMemory()
    state = world.state.copy()
    total = 0.0
    for step in range(23000):
        if step < 15000 or random.random() < 0.1:
            action = random.randrange(ACTIONS)
        else:
            with torch.no_grad():
                action = int(net(torch.from_numpy(state)).argmax())
        following, reward = world.step(action)
        memory.push((state, action, reward, following))
        state = following
        total += reward
        if step < 15000:
            continue
        rows, batch = memory.sample()
        s, a, r, n = zip(*batch)
        s, n = torch.from_numpy(np.stack(s)), torch.from_numpy(np.stack(n))
        a, r = torch.tensor(a), torch.tensor(r)
        with torch.no_grad():
            goal = r + 0.95 * net(n).max(dim=1).values
        value = net(s).gather(1, a[:, None]).squeeze(1)
        error = goal - value
        optimizer.zero_grad()
        (error ** 2).mean().backward()
        optimizer.step()
        memory.update(rows, error.detach().abs().tolist())
        if (step + 1) % 2000 == 0:
            print(f"step {step + 1} mean reward {total / (step + 1):.4f}")


if __name__ == "__main__":
    main()
