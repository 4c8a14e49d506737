"""Bird calls: spectrograms are computed once and kept, then a small CNN is trained on them (Keras)."""
import os
from pathlib import Path

os.environ.setdefault("KERAS_HOME", str(Path(os.environ.get("TMPDIR", ".")) / "keras_birds"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

RATE, SECONDS, SPECIES = 8000, 2, 6
CLIPS, DEV = 1200, 96


def record(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(RATE * SECONDS, dtype=np.float32) / RATE
    label = rng.integers(0, SPECIES, n)
    sound = 0.5 * rng.standard_normal((n, len(t)), dtype=np.float32)
    for i, k in enumerate(label):
        f = 700 + 350 * k + 60 * rng.normal() + 300 * np.sin(2 * np.pi * (2 + k) * t)
        gate = np.abs(t - rng.uniform(0.5, 1.5)) < 0.35
        sound[i] += 0.6 * gate * np.sin(2 * np.pi * np.cumsum(f) / RATE)
    return sound, label


MEL = tf.signal.linear_to_mel_weight_matrix(64, 513, RATE, 100.0, 3900.0)


def spectrogram(sound, label):
    z = tf.signal.stft(sound, frame_length=1024, frame_step=128)
    mel = tf.math.log(tf.matmul(tf.abs(z) ** 2, MEL) + 1e-4)
    return mel[..., None], label


def pipeline(sound, label, training):
    ds = tf.data.Dataset.from_tensor_slices((sound, label))
    ds = ds.map(spectrogram, num_parallel_calls=2).cache()
    if training:
        ds = ds.shuffle(len(label), seed=1)
    return ds.batch(32).prefetch(2)


def build():
    inp = keras.Input((118, 64, 1))
    h = keras.layers.Normalization(mean=-1.0, variance=4.0)(inp)
    for width in (16, 32, 48):
        h = keras.layers.Conv2D(width, 3, padding="same", activation="relu")(h)
        h = keras.layers.MaxPooling2D()(h)
    h = keras.layers.GlobalAveragePooling2D()(h)
    out = keras.layers.Dense(SPECIES, activation="softmax")(h)
    model = keras.Model(inp, out)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def main():
    keras.utils.set_random_seed(2)
    train = pipeline(*record(CLIPS, 1), True)
    dev = pipeline(*record(DEV, 2), False)
    model = build()
    history = model.fit(train, validation_data=dev, epochs=6, verbose=0)
    print("dev accuracy", [round(a, 1) for a in history.history["val_accuracy"]][-3:])


if __name__ == "__main__":
    main()
