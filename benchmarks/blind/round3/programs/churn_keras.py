"""Subscriber churn from monthly usage (Keras)."""
import os
from pathlib import Path

os.environ.setdefault("KERAS_HOME", str(Path(os.environ.get("TMPDIR", ".")) / "keras_home"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from sklearn.metrics import average_precision_score, roc_auc_score

MONTHS, SIGNALS = 12, 8


def subscribers(n, seed):
    rng = np.random.default_rng(seed)
    level = rng.gamma(2.0, 1.0, (n, 1, SIGNALS))
    trend = rng.normal(0, 0.12, (n, 1, SIGNALS))
    month = np.arange(MONTHS)[None, :, None]
    use = level * np.exp(trend * month / 3) + 0.5 * rng.normal(size=(n, MONTHS, SIGNALS))
    z = -2.0 - 4.0 * trend[:, 0].sum(1) + 0.4 * (level[:, 0, 0] > 3) - 0.3 * level[:, 0, 1]
    left = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(np.float32)
    return use.astype(np.float32), left[:, None]


def ranking(y_true, y_score):
    y, s = y_true.ravel(), y_score.ravel()
    if y.min() == y.max():
        return np.float32(0.5), np.float32(y.mean())
    return np.float32(roc_auc_score(y, s)), np.float32(average_precision_score(y, s))


def auc(y_true, y_pred):
    return tf.ensure_shape(tf.numpy_function(lambda a, b: ranking(a, b)[0], [y_true, y_pred], tf.float32), ())


def avg_precision(y_true, y_pred):
    return tf.ensure_shape(tf.numpy_function(lambda a, b: ranking(a, b)[1], [y_true, y_pred], tf.float32), ())


def build():
    inp = keras.Input((MONTHS, SIGNALS))
    norm = keras.layers.BatchNormalization()(inp)
    h = keras.layers.Conv1D(48, 3, activation="gelu")(norm)
    h = keras.layers.Conv1D(48, 3, activation="gelu")(h)
    h = keras.layers.Flatten()(h)
    h = keras.layers.Dense(160, activation="gelu")(h)
    return keras.Model(inp, keras.layers.Dense(1, activation="sigmoid")(h))


def main():
    keras.utils.set_random_seed(10)
    x, y = subscribers(36_000, 1)
    tx, ty = subscribers(4_000, 2)
    model = build()
    model.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="binary_crossentropy",
                  metrics=[auc, avg_precision], jit_compile=False)
    model.fit(x, y, batch_size=128, epochs=6, shuffle=True, verbose=0)
    p = model.predict(tx, batch_size=1000, verbose=0)
    a, ap = ranking(ty, p)
    print(f"test AUC {a:.3f}, average precision {ap:.3f}")


if __name__ == "__main__":
    main()
