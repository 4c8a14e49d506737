"""Actor-critic control of the gates of a dam, with eight simulated rivers."""
import multiprocessing
import random

import numpy as np
import torch
from torch import nn

RIVERS, HORIZON, UPDATES = 8, 100, 240


class River:
    """Storage, inflow and season; the action opens the gate by a third, two or in full."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.reset()

    def reset(self):
        self.store, self.inflow, self.day = 0.5, 0.1, 0
        return self.observe()

    def observe(self):
        return [self.store, self.inflow, (self.day % 90) / 90.0]

    def step(self, action):
        season = 0.1 + 0.08 * ((self.day % 90) / 90.0)
        self.inflow = 0.8 * self.inflow + 0.2 * season + self.rng.gauss(0, 0.01)
        release = 0.08 * (action + 1) * self.store
        self.store += 0.3 * self.inflow - release
        self.day += 1
        reward = min(release, 0.06) - (1.0 if self.store > 1.0 or self.store < 0.05 else 0.0)
        done = not 0.05 <= self.store <= 1.0 or self.day >= 200
        return (self.reset() if done else self.observe()), reward, done


def serve(pipe, seed):
    river = River(seed)
    pipe.send(river.reset())
    while True:
        pipe.send(river.step(pipe.recv()))


class RiverPool:
    def __init__(self, n):
        context = multiprocessing.get_context("fork")
        pairs = [context.Pipe() for _ in range(n)]
        self.pipes = [ours for ours, _ in pairs]
        self.workers = [context.Process(target=serve, args=(theirs, i), daemon=True)
                        for i, (_, theirs) in enumerate(pairs)]
        for worker in self.workers:
            worker.start()
        self.first = [pipe.recv() for pipe in self.pipes]

    def step(self, actions):
        for pipe, action in zip(self.pipes, actions):
            pipe.send(action)
        return zip(*[pipe.recv() for pipe in self.pipes])


def main():
    torch.manual_seed(2)
    pool = RiverPool(RIVERS)
    net = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    seen, income = list(pool.first), 0.0
    for update in range(1, UPDATES + 1):
        states, actions, rewards, dones = [], [], [], []
        for _ in range(HORIZON):
            state = torch.tensor(seen)
            with torch.no_grad():
                action = torch.multinomial(net(state)[:, :3].softmax(1), 1).squeeze(1)
            seen, reward, done = pool.step(action.tolist())
            states.append(state)
            actions.append(action)
            rewards.append(reward)
            dones.append(done)
        income += np.sum(rewards)
        value, returns = torch.zeros(RIVERS), []
        for reward, done in zip(reversed(rewards), reversed(dones)):
            value = torch.tensor(reward) + 0.97 * value * ~torch.tensor(done)
            returns.insert(0, value)
        out = net(torch.cat(states))
        target = torch.cat(returns)
        gain = (target - out[:, 3]).detach()
        chosen = out[:, :3].log_softmax(1).gather(1, torch.cat(actions)[:, None])[:, 0]
        loss = -(chosen * gain).mean() + 0.5 * (target - out[:, 3]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 60 == 0:
            print(f"update {update}: mean income {income / 60:.3f}")
            income = 0.0


if __name__ == "__main__":
    main()
