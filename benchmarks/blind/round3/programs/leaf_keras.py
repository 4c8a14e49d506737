"""Leaf disease from photographs: tf.data pipeline over PNG files, Keras CNN."""
import os
from pathlib import Path

BASE = Path(os.environ.get("TMPDIR", ".")) / "leaves"
os.environ.setdefault("KERAS_HOME", str(BASE / "keras"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from PIL import Image

KINDS, PHOTO, INPUT = 4, 288, 64
TRAIN, TEST, EPOCHS = 480, 80, 5


def photograph(folder, n, seed):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:PHOTO, 0:PHOTO] / PHOTO
    grain = rng.integers(0, 12, (8, PHOTO, PHOTO, 3), dtype=np.uint8)
    base = np.zeros((PHOTO, PHOTO, 3), np.uint8)
    base[..., 1] = (90 + 60 * np.exp(-((yy - 0.5) ** 2 * 6 + (xx - 0.5) ** 2 * 12))).astype(np.uint8)
    kinds = rng.integers(0, KINDS, n)
    names = []
    for i, k in enumerate(kinds):
        img = base + grain[int(rng.integers(8))]
        for _ in range(4 * k):
            cy, cx = rng.integers(30, PHOTO - 30, 2)
            img[cy - 9:cy + 9, cx - 9:cx + 9, 0] = 150
        names.append(str(folder / f"{i:04d}.png"))
        Image.fromarray(img).save(names[-1], compress_level=1)
    return names, kinds


def load(name, kind):
    img = tf.io.decode_png(tf.io.read_file(name), channels=3)
    img = tf.image.resize(tf.cast(img, tf.float32) / 255.0, (INPUT, INPUT), antialias=True)
    return img, kind


def pipeline(names, kinds, training):
    ds = tf.data.Dataset.from_tensor_slices((names, kinds))
    ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        ds = ds.shuffle(len(names), seed=3)
    return ds.batch(32).prefetch(tf.data.AUTOTUNE)


class PerKind(keras.callbacks.Callback):
    """Accuracy of every kind over the training photographs."""

    def __init__(self, ds, kinds):
        super().__init__()
        self.ds, self.kinds = ds, np.asarray(kinds)
        self.table = None

    def on_epoch_end(self, epoch, logs=None):
        guess = self.model.predict(self.ds, verbose=0).argmax(1)
        self.table = [float((guess[self.kinds == k] == k).mean()) for k in range(KINDS)]


def build():
    m = keras.Sequential([keras.Input((INPUT, INPUT, 3))])
    for width in (16, 32, 48):
        m.add(keras.layers.Conv2D(width, 3, padding="same", activation="relu"))
        m.add(keras.layers.Conv2D(width, 3, padding="same", activation="relu"))
        m.add(keras.layers.MaxPooling2D())
    m.add(keras.layers.GlobalMaxPooling2D())
    m.add(keras.layers.Dense(KINDS))
    m.compile(optimizer=keras.optimizers.Adam(1e-3),
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return m


if __name__ == "__main__":
    keras.utils.set_random_seed(5)
    names, kinds = photograph(BASE / "train", TRAIN, 1)
    tnames, tkinds = photograph(BASE / "test", TEST, 2)
    report = PerKind(pipeline(names, kinds, False), kinds)
    model = build()
    model.fit(pipeline(names, kinds, True), epochs=EPOCHS, verbose=0, callbacks=[report])
    _, acc = model.evaluate(pipeline(tnames, tkinds, False), verbose=0)
    print("training accuracy by kind", [round(a, 1) for a in report.table], f"test {acc:.2f}")
