"""A policy-gradient agent that keeps the water of a canal section at its level.

Every episode is a week of decisions; the agent opens, keeps or closes the sluice.
"""
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

EPISODES, STEPS = 26, 2400
GAMMA = 0.995


class Canal:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.level, self.gate, self.inflow, self.hour = 0.4, 0.5, 0.5, 0.0
        return self.view()

    def view(self):
        return torch.tensor([self.level - 0.5, self.gate, self.inflow,
                             np.sin(self.hour), np.cos(self.hour)], dtype=torch.float32)

    def act(self, action):
        self.gate = min(1.0, max(0.0, self.gate + 0.05 * (action - 1)))
        self.hour += 2 * np.pi / 240
        self.inflow += 0.05 * (0.5 + 0.2 * np.sin(self.hour) - self.inflow)
        self.inflow = max(0.0, self.inflow + 0.02 * self.rng.normal())
        self.level += 0.02 * (self.inflow - self.gate * (0.5 + self.level))
        self.level = min(1.5, max(0.0, self.level))
        return self.view(), -abs(self.level - 0.5) - 0.02 * abs(action - 1)


def build():
    return nn.Sequential(nn.Linear(5, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(),
                         nn.Linear(48, 3))


def play(canal, policy):
    views, actions, rewards = [], [], []
    view = canal.reset()
    with torch.no_grad():
        for _ in range(STEPS):
            action = int(Categorical(logits=policy(view)).sample())
            views.append(view)
            actions.append(action)
            view, reward = canal.act(action)
            rewards.append(reward)
    return torch.stack(views), torch.tensor(actions), rewards


def returns_of(rewards):
    """The discounted sum of everything that follows each step."""
    result = []
    for t in range(len(rewards)):
        result.append(sum(GAMMA ** k * reward for k, reward in enumerate(rewards[t:])))
    return torch.tensor(result, dtype=torch.float32)


def learn(policy, optimizer, views, actions, gains):
    weights = (gains - gains.mean()) / (gains.std() + 1e-6)
    chosen = Categorical(logits=policy(views))
    loss = -(chosen.log_prob(actions) * weights).mean() - 0.01 * chosen.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(6)
    canal, policy = Canal(3), build()
    optimizer = torch.optim.Adam(policy.parameters(), lr=4e-3)
    for episode in range(EPISODES):
        views, actions, rewards = play(canal, policy)
        loss = learn(policy, optimizer, views, actions, returns_of(rewards))
        if episode % 5 == 0:
            off = float((views[:, 0]).abs().mean())
            print(f"episode {episode:2d}: mean deviation {off:.3f} m, loss {loss:.2f}")
    print(f"{EPISODES * STEPS} decisions made")


if __name__ == "__main__":
    main()
