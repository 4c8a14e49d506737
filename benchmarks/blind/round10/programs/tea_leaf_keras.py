"""Grades of tea leaves from small images, with a stepwise learning rate (Keras)."""
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
from keras import layers

IMAGES, SIZE, GRADES = 900, 32, 4
EPOCHS, BATCH = 9, 50


def leaves(seed):
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, GRADES, IMAGES)
    yy, xx = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    x = rng.normal(0, 0.25, (IMAGES, SIZE, SIZE, 3)).astype(np.float32)
    width = 0.25 + 0.12 * grade + rng.normal(0, 0.03, IMAGES)
    angle = rng.uniform(0, np.pi, IMAGES)
    for i in range(IMAGES):
        u = xx * np.cos(angle[i]) + yy * np.sin(angle[i])
        v = -xx * np.sin(angle[i]) + yy * np.cos(angle[i])
        leaf = ((u / 0.9) ** 2 + (v / width[i]) ** 2 < 1).astype(np.float32)
        x[i, :, :, 1] += leaf * (1.0 - 0.1 * grade[i])
        x[i, :, :, 0] += leaf * 0.15 * grade[i]
    return x, grade


def build():
    inputs = keras.Input((SIZE, SIZE, 3))
    h = layers.Conv2D(16, 3, strides=2, padding="same")(inputs)
    for _ in range(4):
        r = h
        for _ in range(2):
            r = layers.BatchNormalization()(r)
            r = layers.Activation("relu")(r)
            r = layers.Conv2D(16, 3, padding="same")(r)
        h = layers.Add()([h, r])
    h = layers.GlobalAveragePooling2D()(h)
    return keras.Model(inputs, layers.Dense(GRADES)(h))


def main():
    keras.utils.set_random_seed(19)
    x, y = leaves(19)
    model = build()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch in range(EPOCHS):
        rate = 3e-3 * 0.8 ** epoch
        model.compile(optimizer=keras.optimizers.SGD(rate, momentum=0.9), loss=loss,
                      metrics=["accuracy"], jit_compile=False)
        log = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
        print(f"epoch {epoch}  rate {rate:.5f}  loss {log.history['loss'][0]:.4f}  "
              f"accuracy {log.history['accuracy'][0]:.3f}")
    print("parameters", model.count_params())


if __name__ == "__main__":
    main()
