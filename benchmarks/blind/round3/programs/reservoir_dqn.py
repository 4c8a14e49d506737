"""Gate control of a chain of water reservoirs with a DQN; starts from a log of earlier operation."""
import random
from collections import deque

import numpy as np
import torch
from torch import nn

BASINS, ACTIONS = 16, 9
STATE = 2 * BASINS
LOGGED, STEPS, BATCH = 500_000, 1500, 256


class Reservoirs:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.level = np.full(BASINS, 0.5, np.float32)
        self.inflow = np.zeros(BASINS, np.float32)

    def observe(self):
        return np.concatenate([self.level, self.inflow])

    def step(self, action):
        self.inflow = 0.8 * self.inflow + 0.05 * self.rng.gamma(0.3, 1.0, BASINS).astype(np.float32)
        out = np.float32(0.01 + 0.02 * action) * self.level
        self.level = np.clip(self.level + 0.2 * self.inflow - out, 0, 1.5)
        self.level[1:] = np.clip(self.level[1:] + 0.5 * out[:-1], 0, 1.5)
        reward = -float(np.abs(self.level - 0.6).sum()) - 0.02 * action
        return self.observe(), reward


class Memory:
    def __init__(self, capacity):
        self.store = deque(maxlen=capacity)

    def push(self, *item):
        self.store.append(item)

    def sample(self, k):
        picked = random.sample(self.store, k)
        s, a, r, s2 = zip(*picked)
        return torch.tensor(s), torch.tensor(a), torch.tensor(r), torch.tensor(s2)


def earlier_operation(memory, seed=3):
    rng = np.random.default_rng(seed)
    s = np.concatenate([rng.uniform(0, 1.2, (LOGGED, BASINS)), rng.gamma(0.3, 0.2, (LOGGED, BASINS))], 1)
    s = s.astype(np.float32)
    a = rng.integers(0, ACTIONS, LOGGED)
    s2 = s.copy()
    s2[:, :BASINS] = np.clip(s[:, :BASINS] * (0.99 - 0.02 * a[:, None]) + 0.2 * s[:, BASINS:], 0, 1.5)
    r = -np.abs(s2[:, :BASINS] - 0.6).sum(1) - 0.02 * a
    for item in zip(s, a.tolist(), r.tolist(), s2):
        memory.push(*item)


def q_network(width=384):
    return nn.Sequential(nn.Linear(STATE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, width), nn.ReLU(), nn.Linear(width, ACTIONS))


def main():
    random.seed(5)
    torch.manual_seed(5)
    rng = np.random.default_rng(5)
    memory = Memory(1_000_000)
    earlier_operation(memory)
    q, target = q_network(), q_network()
    target.load_state_dict(q.state_dict())
    adam = torch.optim.Adam(q.parameters(), lr=5e-4)
    env = Reservoirs(seed=6)
    state, rewards = env.observe(), []
    for step in range(STEPS):
        if rng.random() < 0.1:
            action = int(rng.integers(ACTIONS))
        else:
            with torch.no_grad():
                action = int(q(torch.from_numpy(state)).argmax())
        after, reward = env.step(action)
        memory.push(state, action, reward, after)
        state = after
        rewards.append(reward)

        s, a, r, s2 = memory.sample(BATCH)
        with torch.no_grad():
            goal = r + 0.97 * target(s2).max(1).values
        loss = nn.functional.smooth_l1_loss(q(s).gather(1, a[:, None]).squeeze(1), goal)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if step % 100 == 0:
            target.load_state_dict(q.state_dict())
    print(f"mean reward: first 300 steps {np.mean(rewards[:300]):.1f}, last 300 {np.mean(rewards[-300:]):.1f}")


if __name__ == "__main__":
    main()
