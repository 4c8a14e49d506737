"""Tell kinds of mushrooms apart in small photographs (Keras, TensorFlow)."""
import os
import tempfile

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import keras
import numpy as np
from keras import layers

SIDE = 48
KINDS = 6
RATES = [1e-3, 1e-3, 6e-4, 4e-4, 2e-4, 1e-4]


def make_photos(count, seed):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, KINDS, count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    photos = 0.25 * rng.standard_normal((count, SIDE, SIDE, 3)).astype(np.float32)
    for i, k in enumerate(kind):
        radius = 0.15 + 0.04 * k + 0.02 * rng.standard_normal()
        cap = (xx ** 2 + (yy * (1 + 0.2 * k)) ** 2 < radius ** 2)
        photos[i, :, :, k % 3] += 0.8 * cap
        stem = (np.abs(xx) < 0.03 + 0.01 * (k % 2)) & (yy > 0)
        photos[i, :, :, (k + 1) % 3] += 0.6 * stem
    return photos, kind


def build():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    for width in (24, 32, 48, 64):
        skip = layers.Conv2D(width, 1, use_bias=False)(x)
        x = layers.SeparableConv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.SeparableConv2D(width, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Add()([x, skip])
        if width in (32, 64):
            x = layers.MaxPooling2D(2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(KINDS, activation="softmax")(x))


def main():
    keras.utils.set_random_seed(3)
    photos, kind = make_photos(900, 1)
    photos_val, kind_val = make_photos(256, 2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mushrooms.keras")
        build().save(path)
        for epoch, rate in enumerate(RATES):
            model = keras.models.load_model(path)
            model.compile(optimizer=keras.optimizers.Adam(rate),
                          loss="sparse_categorical_crossentropy",
                          metrics=["accuracy"], jit_compile=False)
            log = model.fit(photos, kind, batch_size=32, epochs=1, verbose=0,
                            validation_data=(photos_val, kind_val)).history
            model.save(path)
            print(f"epoch {epoch} rate {rate:.5f} loss {log['loss'][0]:.4f} "
                  f"valid accuracy {log['val_accuracy'][0]:.3f}")


if __name__ == "__main__":
    main()
