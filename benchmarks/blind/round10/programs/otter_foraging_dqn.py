"""A foraging otter on a patchy coast learns when to dive: DQN with prioritised replay."""
import numpy as np
import torch
from torch import nn

PATCHES, ACTIONS, STATE = 12, 4, 28
CAPACITY, PREFILL, STEPS, BATCH = 90000, 80000, 6000, 64
ALPHA, GAMMA = 0.6, 0.97


class Coast:
    def __init__(self, rng):
        self.rng = rng
        self.food = rng.uniform(0.2, 1.0, PATCHES)
        self.place, self.energy = 0, 1.0

    def state(self):
        here = np.zeros(PATCHES)
        here[self.place] = 1.0
        return np.concatenate([self.food, here, [self.energy, self.food[self.place], 1.0, 0.0]])

    def act(self, a):
        reward = -0.02
        if a == 0:
            self.place = (self.place - 1) % PATCHES
        elif a == 1:
            self.place = (self.place + 1) % PATCHES
        elif a == 2:
            bite = 0.3 * self.food[self.place]
            self.food[self.place] -= bite
            reward += bite
        self.food = np.minimum(1.0, self.food + 0.01 * self.rng.random(PATCHES))
        self.energy = float(np.clip(self.energy + reward, 0.0, 1.0))
        return reward, self.state()


class Replay:
    def __init__(self, rng):
        self.rng, self.size, self.head = rng, 0, 0
        self.s = np.zeros((CAPACITY, STATE), np.float32)
        self.n = np.zeros((CAPACITY, STATE), np.float32)
        self.a = np.zeros(CAPACITY, np.int64)
        self.r = np.zeros(CAPACITY, np.float32)
        self.priority = np.zeros(CAPACITY)

    def add(self, s, a, r, n):
        i = (self.head + np.arange(len(s))) % CAPACITY
        self.s[i], self.a[i], self.r[i], self.n[i] = s, a, r, n
        self.update(i, np.ones(len(s)))
        self.head = (self.head + len(s)) % CAPACITY
        self.size = min(self.size + len(s), CAPACITY)

    def update(self, index, priority):
        self.priority[index] = priority

    def draw(self):
        weight = self.priority[:self.size] ** ALPHA
        return self.rng.choice(self.size, BATCH, p=weight / weight.sum())


def main():
    torch.manual_seed(3)
    rng = np.random.default_rng(3)
    coast, replay = Coast(rng), Replay(rng)
    s = coast.state()
    for _ in range(PREFILL // 20):
        a = int(rng.integers(ACTIONS))
        r, n = coast.act(a)
        crowd = s + rng.normal(0, 0.01, (20, STATE))
        replay.add(crowd, a, r, n)
        s = n
    net = nn.Sequential(nn.Linear(STATE, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(),
                        nn.Linear(96, ACTIONS))
    opt = torch.optim.Adam(net.parameters(), lr=5e-4)
    earned = 0.0
    for step in range(STEPS):
        with torch.no_grad():
            q = net(torch.from_numpy(s.astype(np.float32)))
        a = int(q.argmax()) if rng.random() > 0.1 else int(rng.integers(ACTIONS))
        r, n = coast.act(a)
        replay.add(s[None], a, r, n)
        s, earned = n, earned + r
        idx = replay.draw()
        bs, bn = torch.from_numpy(replay.s[idx]), torch.from_numpy(replay.n[idx])
        ba, br = torch.from_numpy(replay.a[idx]), torch.from_numpy(replay.r[idx])
        with torch.no_grad():
            target = br + GAMMA * net(bn).max(1).values
        error = net(bs).gather(1, ba[:, None]).squeeze(1) - target
        opt.zero_grad()
        (error ** 2).mean().backward()
        opt.step()
        replay.update(idx, error.detach().abs().numpy() + 1e-3)
        if (step + 1) % 1500 == 0:
            print(f"step {step + 1}  food per step {earned / 1500:.4f}")
            earned = 0.0


if __name__ == "__main__":
    main()
