"""Classify short seismogram windows: noise, upward onset, downward onset."""
import os
import tempfile

os.environ.setdefault("KERAS_HOME", tempfile.mkdtemp(prefix="keras_"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SAMPLES = 256
BATCH = 64
EPOCHS = 11


def synth(count, seed):
    rng = np.random.default_rng(seed)
    traces = rng.standard_normal((count, SAMPLES)).astype("float32")
    kind = rng.integers(0, 3, count).astype("int32")
    onset = rng.integers(60, 180, count)
    t = np.arange(SAMPLES)[None, :] - onset[:, None]
    ring = np.where(t >= 0, np.exp(-np.clip(t, 0, None) / 25.0) * np.cos(t / 3.0), 0.0)
    sign = np.array([0.0, 1.0, -1.0])[kind][:, None]
    gain = rng.uniform(1.5, 4.0, (count, 1))
    offset = rng.normal(0, 5, (count, 1))
    return (traces + sign * gain * ring + offset).astype("float32"), kind


def standardise(trace):
    return (trace - trace.mean()) / (trace.std() + 1e-6)


def window_source(traces, kind):
    def windows():
        for trace, k in zip(traces, kind):
            yield standardise(trace)[:, None], k

    return tf.data.Dataset.from_generator(
        windows,
        output_signature=(
            tf.TensorSpec((SAMPLES, 1), tf.float32),
            tf.TensorSpec((), tf.int32),
        ),
    ).batch(BATCH)


def build():
    model = keras.Sequential([
        layers.Input((SAMPLES, 1)),
        layers.Conv1D(8, 9, strides=4, activation="relu"),
        layers.Conv1D(16, 5, strides=2, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(16, activation="relu"),
        layers.Dense(3),
    ])
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def main():
    keras.utils.set_random_seed(12)
    traces, kind = synth(16000, 1)
    test_traces, test_kind = synth(1500, 2)
    model = build()
    history = model.fit(window_source(traces, kind), epochs=EPOCHS, verbose=0)
    print("training accuracy by epoch:", " ".join(f"{a:.2f}" for a in history.history["accuracy"]))
    test_x = np.stack([standardise(t) for t in test_traces])[..., None]
    _, acc = model.evaluate(test_x, test_kind, batch_size=500, verbose=0)
    print(f"test accuracy {acc:.2f}")


if __name__ == "__main__":
    main()
