"""Count-class images of leafhoppers on sticky traps: a Keras network, four epochs."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
from keras import layers

TRAPS, SIDE, CLASSES = 3000, 36, 4
EPOCHS = 4


def traps():
    rng = np.random.default_rng(90)
    label = rng.integers(0, CLASSES, TRAPS)
    image = rng.normal(0.75, 0.08, (TRAPS, SIDE, SIDE, 3)).astype("float32")
    image[..., 2] *= 0.6
    for number in range(TRAPS):
        for _ in range(int(label[number]) * 4 + int(rng.integers(0, 3))):
            a, b = rng.integers(1, SIDE - 4, 2)
            image[number, a:a + 3, b:b + 2] *= 0.45
        for _ in range(int(rng.integers(0, 4))):
            a, b = rng.integers(0, SIDE - 8, 2)
            image[number, a:a + 7, b:b + 6, 1] *= 0.8
    return image, label


def build():
    model = keras.Sequential([
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(96, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(64, activation="relu"),
        layers.Dense(CLASSES),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3),
                  loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


def main():
    keras.utils.set_random_seed(3)
    image, label = traps()
    cut = int(0.85 * TRAPS)
    model = build()
    history = model.fit(image[:cut], label[:cut], batch_size=64, epochs=EPOCHS, verbose=0,
                        validation_data=(image[cut:], label[cut:]))
    for epoch in range(EPOCHS):
        print(f"epoch {epoch}: loss {history.history['loss'][epoch]:.3f}, "
              f"held-out accuracy {history.history['val_accuracy'][epoch]:.3f}")
    guess = model.predict(image[cut:], batch_size=128, verbose=0).argmax(1)
    table = np.zeros((CLASSES, CLASSES), dtype=int)
    np.add.at(table, (label[cut:], guess), 1)
    print(table)


if __name__ == "__main__":
    main()
