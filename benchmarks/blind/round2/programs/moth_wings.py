"""Recognises wing pattern families of moths from photographs on disk with a small Keras network."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import shutil
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

PHOTOS, FAMILIES, EDGE = 700, 4, 48


def photograph(folder):
    rng = np.random.default_rng(71)
    yy, xx = np.mgrid[-1:1:512j, -1:1:512j]
    for i in range(PHOTOS):
        fam = i % FAMILIES
        phase = rng.uniform(0, 6.28)
        band = [np.sin(14 * xx + phase), np.sin(14 * yy + phase), np.sin(10 * np.hypot(xx, yy) + phase),
                np.sin(9 * xx + phase) * np.sin(9 * yy)][fam]
        grain = rng.integers(-50, 50, (64, 64)).repeat(8, 0).repeat(8, 1)
        img = np.clip(128 + 70 * band + grain, 0, 255).astype(np.uint8)
        Image.fromarray(img).convert("RGB").save(os.path.join(folder, f"m{i:05d}_{fam}.jpg"), quality=90)


def load(path, family):
    img = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    img = tf.image.resize(img, (EDGE, EDGE), antialias=True)
    return img / 127.5 - 1.0, family


def pipeline(folder):
    names = sorted(os.listdir(folder))
    fam = [int(n[-5]) for n in names]
    ds = tf.data.Dataset.from_tensor_slices(([os.path.join(folder, n) for n in names], fam))
    ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.shuffle(PHOTOS, seed=2, reshuffle_each_iteration=True)
    return ds.batch(28).prefetch(2)


def network():
    return keras.Sequential([
        layers.Input((EDGE, EDGE, 3)),
        layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"), layers.GlobalAveragePooling2D(),
        layers.Dense(FAMILIES)])


def main():
    keras.utils.set_random_seed(9)
    folder = tempfile.mkdtemp(prefix="moths_")
    photograph(folder)
    model = network()
    model.compile(keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    hist = model.fit(pipeline(folder), epochs=9, verbose=0)
    print("training accuracy by epoch", " ".join(f"{a:.2f}" for a in hist.history["accuracy"]))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
