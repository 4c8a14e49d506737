"""
verdict: none
stack:
  collect(gym.make("Acrobot-v1"), agent, episodes=500)
  look_ahead(env, controller)
  branch.step(action)
why: env is stepped between the calls, so the look-ahead starts from another state although its arguments are the same objects
"""
import copy

import gymnasium as gym
import numpy as np


class Controller:
    def __init__(self, actions, depth=12, width=20, seed=0):
        self.actions = actions
        self.depth = depth
        self.width = width
        self.seed = seed


def look_ahead(world, plan):
    rng = np.random.default_rng(plan.seed)
    best, choice = -np.inf, 0
    for _ in range(plan.width):
        branch = copy.deepcopy(world)
        sequence = rng.integers(plan.actions, size=plan.depth)
        total = 0.0
        for action in sequence:
            observation, reward, done, _, _ = branch.step(action)
            total += reward - observation[0]
            if done:
                break
        if total > best:
            best, choice = total, int(sequence[0])
    return choice


def collect(env, controller, episodes):
    returns = []
    for episode in range(episodes):
        env.reset(seed=7)
        done = truncated = False
        gained = 0.0
        while not (done or truncated):
            move = look_ahead(env, controller)
            _, reward, done, truncated, _ = env.step(move)
            gained += reward
        controller.depth += 1
        returns.append(gained)
    return returns


if __name__ == "__main__":
    agent = Controller(actions=3)
    print(np.mean(collect(gym.make("Acrobot-v1"), agent, episodes=500)))
