"""Steering a tunnel boring machine through mixed ground: policy gradient on many simulated drives."""
import numpy as np
import torch
from torch import nn

DRIVES, RINGS, SENSORS, ACTIONS = 64, 60, 10, 5
UPDATES, GAMMA = 900, 0.98
PUSH = np.linspace(-1.0, 1.0, ACTIONS)


class Drives:
    """All drives advance by one ring together."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.offset = self.rng.normal(0, 0.5, DRIVES)
        self.slope = self.rng.normal(0, 0.1, DRIVES)
        self.hard = self.rng.random((DRIVES, RINGS + 4)) < 0.3
        self.ring = 0
        return self.sense()

    def sense(self):
        ahead = self.hard[:, self.ring:self.ring + 4]
        extra = self.rng.normal(0, 0.1, (DRIVES, 4))
        view = np.column_stack([self.offset, self.slope, ahead, extra])
        return torch.from_numpy(view.astype(np.float32))

    def advance(self, action):
        grip = np.where(self.hard[:, self.ring], 0.05, 0.12)
        self.slope += grip * PUSH[action] + self.rng.normal(0, 0.03, DRIVES)
        self.offset += self.slope
        self.ring += 1
        reward = -np.minimum(self.offset ** 2, 4.0) - 0.02 * np.abs(PUSH[action])
        return reward, self.sense()


def main():
    torch.manual_seed(36)
    rng = np.random.default_rng(36)
    policy = nn.Sequential(nn.Linear(SENSORS, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(),
                           nn.Linear(64, ACTIONS))
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    drives = Drives(rng)
    earned = []
    for update in range(1, UPDATES + 1):
        views, actions, rewards = [], [], []
        view = drives.reset()
        for _ in range(RINGS):
            with torch.no_grad():
                logits = policy(view)
            noise = torch.from_numpy(rng.gumbel(size=(DRIVES, ACTIONS)))
            action = (logits + noise).argmax(1)
            reward, following = drives.advance(action.numpy())
            views.append(view)
            actions.append(action)
            rewards.append(reward)
            view = following
        gain = np.zeros((RINGS, DRIVES))
        future = np.zeros(DRIVES)
        for k in reversed(range(RINGS)):
            future = rewards[k] + GAMMA * future
            gain[k] = future
        gain = (gain - gain.mean(1, keepdims=True)) / (gain.std(1, keepdims=True) + 1e-6)
        weight = torch.from_numpy(gain.astype(np.float32)).reshape(-1)
        logits = policy(torch.cat(views))
        loss = (nn.functional.cross_entropy(logits, torch.cat(actions), reduction="none")
                * weight).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        earned.append(float(np.sum(rewards) / DRIVES))
        if update % 225 == 0:
            print(f"update {update}  return per drive {np.mean(earned[-225:]):.2f}")


if __name__ == "__main__":
    main()
