"""Deep Q-learning for a small planetary lander."""
import os
import random
from collections import deque

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
from keras import layers

THRUST = np.array([[0.0, 0.0], [0.0, 3.2], [-0.8, 0.4], [0.8, 0.4]])
BATCH = 32
UPDATES = 18
GAMMA = 0.98


def start(rng):
    return np.array([rng.normal(0, 3), 40.0, rng.normal(0, 1), -2.0, 1.0], np.float32)


def fly(state, action):
    x, height, vx, vy, fuel = (float(v) for v in state)
    push = THRUST[action] if fuel > 0 else THRUST[0]
    vx += 0.2 * push[0]
    vy += 0.2 * (push[1] - 1.6)
    x, height = x + 0.2 * vx, height + 0.2 * vy
    fuel -= 0.004 * (action != 0)
    done = height <= 0
    reward = -0.01 * abs(x) - 0.02 * abs(vx)
    if done:
        reward += 10.0 - 2.0 * abs(vy) - 0.5 * abs(x)
    return np.array([x, height, vx, vy, fuel], np.float32), reward, done


def make_net():
    net = keras.Sequential([
        layers.Input((5,)),
        layers.Rescaling(0.1),
        layers.Dense(64, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(4),
    ])
    net.compile(optimizer=keras.optimizers.Adam(1e-3), loss="huber")
    return net


def learn(net, target_net, memory):
    sample = random.sample(memory, BATCH)
    states = np.stack([s for s, *_ in sample])
    values = np.array(net.predict_on_batch(states))
    for row, (state, action, reward, after, done) in enumerate(sample):
        future = target_net.predict(after[None], verbose=0)[0].max()
        values[row, action] = reward + (0.0 if done else GAMMA * future)
    return float(np.ravel(net.train_on_batch(states, values))[0])


def main():
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    net, target_net = make_net(), make_net()
    target_net.set_weights(net.get_weights())
    memory = deque(maxlen=2000)
    state, step, losses = start(rng), 0, []
    while len(losses) < UPDATES:
        if rng.random() < 0.3:
            action = int(rng.integers(4))
        else:
            action = int(np.argmax(net.predict_on_batch(state[None])[0]))
        after, reward, done = fly(state, action)
        memory.append((state, action, reward, after, done))
        state = start(rng) if done else after
        step += 1
        if step > 100 and step % 20 == 0:
            losses.append(learn(net, target_net, memory))
            if len(losses) % 6 == 0:
                target_net.set_weights(net.get_weights())
                print(f"step {step}  update {len(losses)}  loss {losses[-1]:.4f}", flush=True)
    print(f"mean loss of the last updates {np.mean(losses[-6:]):.4f}")


if __name__ == "__main__":
    main()
