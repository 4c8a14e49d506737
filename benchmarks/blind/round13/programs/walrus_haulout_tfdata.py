"""Estimate the share of a beach covered by hauled-out walruses from aerial photographs."""
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from PIL import Image

PHOTOS = 320
SIDE = 512
EPOCHS = 10


def write_photos(folder):
    rng = np.random.default_rng(12)
    names, shares = [], []
    line = np.arange(SIDE, dtype=np.float32) / SIDE
    for k in range(PHOTOS):
        tilt = rng.uniform(-1, 1, 3).astype(np.float32)
        photo = np.empty((SIDE, SIDE, 3), dtype=np.float32)
        for channel in range(3):
            photo[..., channel] = 150 + 40 * (tilt[channel] * line[None, :] + line[:, None])
        herd = rng.uniform(0.05, 0.7)
        bump = np.sin(31 * line + 7 * tilt[0])[None, :] + np.sin(27 * line + 5 * tilt[1])[:, None]
        covered = bump / 4 + 0.5 < herd
        photo[covered] -= 60
        name = os.path.join(folder, f"beach_{k:04d}.jpg")
        Image.fromarray(photo.clip(0, 255).astype(np.uint8)).save(name, quality=88)
        names.append(name)
        shares.append(covered.mean())
    return names, np.array(shares, dtype=np.float32)


def load(name, share):
    photo = tf.io.decode_jpeg(tf.io.read_file(name), channels=3)
    photo = tf.image.resize(photo, (64, 64), method="area") / 255.0
    return photo, share


def build():
    model = keras.Sequential([keras.Input((64, 64, 3))])
    for width in (24, 48, 96):
        model.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
        model.add(layers.MaxPooling2D())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(1, activation="sigmoid"))
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")
    return model


def main():
    keras.utils.set_random_seed(3)
    with tempfile.TemporaryDirectory() as folder:
        names, shares = write_photos(folder)
        photos = tf.data.Dataset.from_tensor_slices((names, shares))
        photos = photos.map(load, num_parallel_calls=tf.data.AUTOTUNE)
        photos = photos.shuffle(PHOTOS, seed=4).batch(32).prefetch(2)
        model = build()
        history = model.fit(photos, epochs=EPOCHS, verbose=0)
    for epoch in range(0, EPOCHS, 2):
        print(f"epoch {epoch}: squared error {history.history['loss'][epoch]:.5f}")
    print(f"last {history.history['loss'][-1]:.5f}")


if __name__ == "__main__":
    main()
