"""Prequential learning of tram delays: predict the next quarter hour, then learn from it."""
import os
import tempfile

os.environ.setdefault("KERAS_HOME", tempfile.mkdtemp(prefix="keras_"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

QUARTERS = 300
TRAMS = 32
INPUTS = 24


def quarter_hours(seed=31):
    """Each quarter hour: one row per tram, line features, weather, load, minutes late."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(0, 1, INPUTS)
    for q in range(QUARTERS):
        effect += 0.02 * rng.normal(0, 1, INPUTS)  # the town changes slowly
        x = rng.normal(0, 1, (TRAMS, INPUTS)).astype("float32")
        x[:, 0] = np.sin(2 * np.pi * q / 96)
        x[:, 1] = np.cos(2 * np.pi * q / 96)
        late = x @ effect + 2 * np.maximum(x[:, 2] * x[:, 3], 0) + 0.3 * rng.normal(0, 1, TRAMS)
        yield q, x, late.astype("float32")[:, None]


def build():
    model = keras.Sequential([
        layers.Input((INPUTS,)),
        layers.Dense(64, activation="relu"),
        layers.Dense(64, activation="relu"),
        layers.Dense(1),
    ])
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="mse")
    return model


def main():
    keras.utils.set_random_seed(6)
    model = build()
    window = []
    for q, x, late in quarter_hours():
        guess = np.asarray(model(x, training=False))
        window.append(float(np.abs(guess - late).mean()))
        model.fit(x, late, batch_size=TRAMS, epochs=1, verbose=0)
        if (q + 1) % 50 == 0:
            print(f"quarter hour {q + 1}: mean error {np.mean(window):.2f} min", flush=True)
            window = []


if __name__ == "__main__":
    main()
