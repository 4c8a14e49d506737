"""
verdict: none
stack:
  evaluate(gym.make("Hover-v1"), episodes=50)
  rollout(env, HOVER)
  env.step(action)
why: the environment has a state, the same action leads to another observation in each step
"""
import gymnasium as gym
import numpy as np

HOVER = np.full(4, 0.62, dtype=np.float32)


def rollout(world, action, limit=1000):
    env = world
    observation, info = env.reset()
    heights = [observation[2]]
    total = 0.0
    for t in range(limit):
        observation, reward, ended, truncated, info = env.step(action)
        heights.append(observation[2])
        total += reward
        if ended or truncated:
            break
    return total, np.std(heights)


def evaluate(env, episodes):
    returns, wobble = [], []
    for episode in range(episodes):
        total, sd = rollout(env, HOVER)
        returns.append(total)
        wobble.append(sd)
    print(f"{np.mean(returns):.2f} +- {np.std(returns):.2f}, {np.mean(wobble):.3f}")


if __name__ == "__main__":
    evaluate(gym.make("Hover-v1"), episodes=50)
