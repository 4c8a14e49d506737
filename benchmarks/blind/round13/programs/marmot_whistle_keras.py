"""Classify alarm whistles of marmots by caller with a one-dimensional network."""
import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import numpy as np
from keras import layers

LENGTH = 256
CALLERS = 5
RATES = [2e-3, 2e-3, 1e-3, 1e-3, 5e-4, 2e-4, 1e-4]


def make_whistles(count, seed):
    rng = np.random.default_rng(seed)
    caller = rng.integers(0, CALLERS, count)
    t = np.linspace(0, 1, LENGTH)
    pitch = 18 + 3 * caller + rng.normal(0, 0.7, count)
    sweep = 6 - caller + rng.normal(0, 0.5, count)
    phase = rng.uniform(0, 6.28, count)
    wave = np.sin(2 * np.pi * (pitch[:, None] * t + sweep[:, None] * t ** 2) + phase[:, None])
    wave += rng.normal(0, 0.6, wave.shape)
    return wave[..., None].astype("float32"), caller.astype("int32")


def build():
    inputs = keras.Input((LENGTH, 1))
    x = inputs
    for width in (16, 24, 32, 48):
        for _ in range(2):
            skip = layers.Conv1D(width, 1, padding="same")(x)
            x = layers.Conv1D(width, 7, padding="same")(x)
            x = layers.BatchNormalization()(x)
            x = layers.Activation("relu")(x)
            x = layers.Add()([x, skip])
        x = layers.MaxPooling1D(2)(x)
    x = layers.GlobalAveragePooling1D()(x)
    outputs = layers.Dense(CALLERS, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main():
    keras.utils.set_random_seed(4)
    x, y = make_whistles(1600, 1)
    x_val, y_val = make_whistles(400, 2)
    model = build()
    best = 0.0
    for epoch, rate in enumerate(RATES):
        model.compile(
            optimizer=keras.optimizers.Adam(rate),
            loss="sparse_categorical_crossentropy",
            metrics=["accuracy"],
        )
        history = model.fit(
            x, y, batch_size=32, epochs=1, verbose=0, validation_data=(x_val, y_val),
        )
        score = history.history["val_accuracy"][0]
        best = max(best, score)
        print(f"epoch {epoch}: rate {rate:.4f} validation accuracy {score:.3f}")
    print(f"best {best:.3f}")


if __name__ == "__main__":
    main()
