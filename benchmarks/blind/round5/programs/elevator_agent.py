"""Teach an agent (Keras) to run the elevator of a six-storey building."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

FLOORS = 6
EPISODES, TICKS = 12, 45
GAMMA = 0.95


class Building:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.reset()

    def reset(self):
        self.floor = 0
        self.waiting = np.zeros(FLOORS)
        self.riding = np.zeros(FLOORS)
        return self.view()

    def view(self):
        place = np.eye(FLOORS)[self.floor]
        return np.concatenate([place, self.waiting / 3, self.riding / 3]).astype("float32")

    def act(self, action):
        """0 goes down, 1 opens the door, 2 goes up."""
        moved = 0.0
        if action == 1:
            moved += self.riding[self.floor]
            self.riding[self.floor] = 0
            for _ in range(int(self.waiting[self.floor])):
                self.riding[self.rng.integers(0, FLOORS)] += 1
            self.waiting[self.floor] = 0
        else:
            self.floor = int(np.clip(self.floor + action - 1, 0, FLOORS - 1))
        if self.rng.random() < 0.4:
            self.waiting[self.rng.integers(0, FLOORS)] += 1
        return self.view(), moved - 0.05 * (self.waiting.sum() + self.riding.sum())


def build():
    model = keras.Sequential([keras.Input((3 * FLOORS,)), layers.Dense(128, activation="relu"),
                              layers.Dense(128, activation="relu"), layers.Dense(3)])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="huber")
    return model


def choose(model, state, epsilon, rng):
    if rng.random() < epsilon:
        return int(rng.integers(0, 3))
    values = model.predict(state[None], verbose=0)
    return int(np.argmax(values[0]))


def learn(model, memory, rng):
    rows = [memory[i] for i in rng.integers(0, len(memory), 64)]
    before = np.stack([row[0] for row in rows])
    after = np.stack([row[3] for row in rows])
    values = np.array(model.predict_on_batch(before))
    future = np.array(model.predict_on_batch(after)).max(1)
    for k, (_, action, reward, _) in enumerate(rows):
        values[k, action] = reward + GAMMA * future[k]
    model.train_on_batch(before, values)


def main():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(8)
    building, model, memory = Building(2), build(), []
    for episode in range(EPISODES):
        state, total = building.reset(), 0.0
        epsilon = max(0.05, 0.5 - 0.08 * episode)
        for tick in range(TICKS):
            action = choose(model, state, epsilon, rng)
            after, reward = building.act(action)
            memory.append((state, action, reward, after))
            state, total = after, total + reward
            if len(memory) >= 64 and tick % 3 == 0:
                learn(model, memory, rng)
        if episode % 3 == 2:
            print(f"episode {episode}: return {total:.1f}, still waiting {building.waiting.sum():.0f}")
    print("transitions remembered:", len(memory))


if __name__ == "__main__":
    main()
