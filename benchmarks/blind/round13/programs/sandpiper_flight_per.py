"""Learn to keep a sandpiper inside its flock with Q-learning and prioritised replay."""
import numpy as np
import torch
from torch import nn

MATES = 10
STATE = 4 * MATES
ACTIONS = 5
CAPACITY = 20000
BATCH = 128
STEPS = 5500
MOVES = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32) * 0.1


class Flock:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.place = self.rng.normal(0, 1, (MATES, 2)).astype(np.float32)
        self.speed = self.rng.normal(0, 0.05, (MATES, 2)).astype(np.float32)
        self.age = 0
        return self.state()

    def state(self):
        return np.concatenate([self.place.ravel(), self.speed.ravel()])

    def step(self, action):
        self.speed += self.rng.normal(0, 0.01, self.speed.shape).astype(np.float32)
        self.place += self.speed - MOVES[action] - 0.02 * self.place
        self.speed *= 0.95
        self.age += 1
        reward = -float(np.hypot(*self.place.mean(axis=0)))
        return self.state(), reward, self.age >= 100


class Replay:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.rows = []
        self.priorities = []
        self.position = 0

    def push(self, row, priority):
        if len(self.rows) < CAPACITY:
            self.rows.append(row)
            self.priorities.append(priority)
        else:
            self.rows[self.position] = row
            self.priorities[self.position] = priority
        self.position = (self.position + 1) % CAPACITY

    def sample(self):
        weights = np.array(self.priorities) ** 0.6
        picks = self.rng.choice(len(self.rows), BATCH, p=weights / weights.sum())
        states, actions, rewards, following = zip(*(self.rows[k] for k in picks))
        return (picks, torch.tensor(states), torch.tensor(actions),
                torch.tensor(rewards), torch.tensor(following))

    def update(self, picks, errors):
        for k, error in zip(picks.tolist(), errors.tolist()):
            self.priorities[k] = error + 0.001


def make_net():
    return nn.Sequential(
        nn.Linear(STATE, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS))


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    flock, memory = Flock(1), Replay(2)
    rng = np.random.default_rng(3)
    net, target = make_net(), make_net()
    target.load_state_dict(net.state_dict())
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    state, rewards = flock.reset(), []
    for step in range(CAPACITY + STEPS):
        greedy = step >= CAPACITY and rng.random() > 0.1
        if greedy:
            with torch.no_grad():
                action = int(net(torch.from_numpy(state)).argmax())
        else:
            action = int(rng.integers(ACTIONS))
        following, reward, done = flock.step(action)
        memory.push((state, action, reward, following), 1.0)
        state = flock.reset() if done else following
        rewards.append(reward)
        if step < CAPACITY:
            continue
        picks, s, a, r, f = memory.sample()
        with torch.no_grad():
            goal = r + 0.95 * target(f).max(1).values
        value = net(s).gather(1, a[:, None]).squeeze(1)
        error = (value - goal).abs()
        optimizer.zero_grad()
        nn.functional.smooth_l1_loss(value, goal).backward()
        optimizer.step()
        memory.update(picks, error.detach())
        if step % 500 == 0:
            target.load_state_dict(net.state_dict())
        if (step - CAPACITY) % 1100 == 1099:
            print(f"step {step - CAPACITY + 1}: mean reward {np.mean(rewards[-1000:]):.4f}", flush=True)


if __name__ == "__main__":
    main()
