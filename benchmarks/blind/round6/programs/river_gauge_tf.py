"""Forecast the water level of a river gauge six hours ahead with keras on tf.data."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from scipy.signal import lfilter

N_HOURS = 20_000
WINDOW = 36
AHEAD = 6
BATCH = 256
EPOCHS = 8


def make_gauge(rng, n):
    """Rain, temperature and level at each hour."""
    wet = lfilter([1.0], [1.0, -0.97], rng.normal(size=n)) > 4.0
    rain = rng.gamma(1.2, 2.0, n) * wet
    season = np.sin(2 * np.pi * np.arange(n) / 8760.0)
    temperature = 9.0 + 8.0 * season + rng.normal(0, 1.5, n)
    fast = lfilter([0.06], [1.0, -0.94], rain)
    slow = lfilter([0.004], [1.0, -0.996], rain * (temperature > 0))
    level = 1.5 + 0.8 * fast + 1.5 * slow + rng.normal(0, 0.02, n)
    series = np.stack([rain, temperature, level], axis=1)
    return ((series - series.mean(0)) / series.std(0)).astype(np.float32)


def make_dataset(series, batch):
    n_windows = len(series) - WINDOW - AHEAD

    def windows():
        for start in range(n_windows):
            stop = start + WINDOW
            yield series[start:stop], series[stop + AHEAD - 1, 2]

    signature = (
        tf.TensorSpec((WINDOW, 3), tf.float32),
        tf.TensorSpec((), tf.float32),
    )
    data = tf.data.Dataset.from_generator(windows, output_signature=signature)
    return data.batch(batch).prefetch(tf.data.AUTOTUNE)


def make_model():
    return keras.Sequential([
        layers.Input((WINDOW, 3)),
        layers.Flatten(),
        layers.Dense(96, activation="relu"),
        layers.Dense(48, activation="relu"),
        layers.Dense(1),
    ])


def main():
    keras.utils.set_random_seed(4)
    rng = np.random.default_rng(4)
    series = make_gauge(rng, N_HOURS)
    cut = N_HOURS - 2500
    train = make_dataset(series[:cut], BATCH)
    held = make_dataset(series[cut:], BATCH)
    model = make_model()
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    history = model.fit(train, epochs=EPOCHS, verbose=0)
    for epoch, loss in enumerate(history.history["loss"]):
        print(f"epoch {epoch}  training loss {loss:.4f}")
    loss, mae = model.evaluate(held, verbose=0)
    print(f"held-out loss {loss:.4f}, mean absolute error {mae:.4f}")


if __name__ == "__main__":
    main()
