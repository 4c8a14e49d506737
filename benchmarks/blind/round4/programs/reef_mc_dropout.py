"""How sure is the coral-cover regressor? Train it, then sample predictions with dropout switched on."""
import os
import tempfile

os.environ.setdefault("KERAS_HOME", tempfile.mkdtemp(prefix="keras_"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

FEATURES = 120
SAMPLES = 100


def reef(count, seed):
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(88)
    a, b = world.normal(0, 1, FEATURES), world.normal(0, 1, FEATURES)
    x = rng.normal(0, 1, (count, FEATURES))
    depth = np.abs(x @ a) / FEATURES**0.5
    cover = 0.4 + 0.2 * np.tanh(x @ b / FEATURES**0.5) - 0.1 * depth + 0.05 * depth * rng.standard_normal(count)
    return x.astype("float32"), cover.astype("float32")[:, None]


def build():
    inputs = layers.Input((FEATURES,))
    x = layers.Dropout(0.1)(inputs)
    for _ in range(3):
        x = layers.Dense(512, activation="relu")(x)
        x = layers.Dropout(0.2)(x)
    model = keras.Model(inputs, layers.Dense(1)(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
    return model


def main():
    keras.utils.set_random_seed(15)
    x, cover = reef(12_000, 1)
    survey_x, survey_cover = reef(4_000, 2)
    model = build()
    history = model.fit(x, cover, batch_size=128, epochs=4, validation_split=0.05, verbose=0)
    print("validation loss:", " ".join(f"{v:.4f}" for v in history.history["val_loss"]))

    @tf.function
    def sample(batch):
        return model(batch, training=True)

    survey = tf.constant(survey_x)
    draws = np.stack([sample(survey).numpy()[:, 0] for _ in range(SAMPLES)])
    mean, spread = draws.mean(axis=0), draws.std(axis=0)
    inside = np.abs(survey_cover[:, 0] - mean) < 2 * spread
    print(f"error {np.abs(survey_cover[:, 0] - mean).mean():.3f}, mean spread {spread.mean():.3f}")
    print(f"{inside.mean():.2f} of the surveys lie within two spreads")


if __name__ == "__main__":
    main()
