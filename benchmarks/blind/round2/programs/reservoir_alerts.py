"""Forecasts reservoir level from daily records (CSV) and lists days with an alert after each epoch."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tempfile

import keras
import numpy as np
import pandas as pd
from keras import layers

PAST = 30


def write_records(path, days=6000):
    rng = np.random.default_rng(303)
    rain = rng.gamma(0.5, 8, days)
    heat = 15 + 10 * np.sin(np.arange(days) / 365.25 * 2 * np.pi) + rng.normal(0, 2, days)
    level = np.empty(days)
    now = 50.0
    for d in range(days):
        now = 0.985 * now + 0.25 * rain[d] - 0.02 * heat[d]
        level[d] = now
    pd.DataFrame({"rain": rain, "heat": heat, "level": level + rng.normal(0, 0.2, days)}).to_csv(path, index=False)


def windows(frame):
    a = ((frame - frame.mean()) / frame.std()).to_numpy(np.float32)
    idx = np.arange(PAST)[None] + np.arange(len(a) - PAST - 1)[:, None]
    return a[idx], a[PAST + 1:, 2:3]


class Alerts(keras.callbacks.Callback):
    def __init__(self, x):
        super().__init__()
        self.x = x
        self.count = []

    def on_epoch_end(self, epoch, logs=None):
        expected = [float(self.model.predict(w[None], verbose=0)[0, 0]) for w in self.x]
        self.count.append(int(np.sum(np.array(expected) > 0.5)))


def main():
    keras.utils.set_random_seed(12)
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "reservoir.csv")
        write_records(path)
        x, y = windows(pd.read_csv(path))
    cut = len(x) - 70
    model = keras.Sequential([
        layers.Input((PAST, 3)),
        layers.Conv1D(32, 5, activation="relu"), layers.Conv1D(32, 5, activation="relu"),
        layers.Conv1D(32, 5, activation="relu"), layers.Flatten(),
        layers.Dense(64, activation="relu"), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-3), "mse", run_eagerly=True)
    watch = Alerts(x[cut:])
    hist = model.fit(x[:cut], y[:cut], batch_size=64, epochs=2, verbose=0, callbacks=[watch])
    print("loss", " ".join(f"{v:.3f}" for v in hist.history["loss"]))
    print("alert days", *watch.count)


if __name__ == "__main__":
    main()
