"""Quality classes of saffron threads from colour photographs."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
from keras import layers

PHOTOS, SIDE, CLASSES = 240, 32, 4
WARM_RATES = (0.01, 0.02, 0.04, 0.02, 0.01, 0.005, 0.002)


def photographs(rng):
    label = rng.integers(0, CLASSES, PHOTOS)
    photo = rng.normal(0.4, 0.15, (PHOTOS, SIDE, SIDE, 3)).astype("float32")
    for index, kind in enumerate(label):
        row = rng.integers(4, SIDE - 8)
        photo[index, row:row + 2 + kind, 3:-3, 0] += 0.4
        photo[index, row:row + 2, 3:-3, 1] += 0.08 * kind
    return photo, label


def residual(x, filters, stride=1):
    short = x
    if stride > 1 or x.shape[-1] != filters:
        short = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.Activation("relu")(layers.BatchNormalization()(y))
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    return layers.Activation("relu")(layers.add([short, y]))


def build():
    inputs = keras.Input((SIDE, SIDE, 3))
    x = layers.Conv2D(12, 3, padding="same")(inputs)
    for filters, stride in ((12, 1), (12, 1), (24, 2), (24, 1), (24, 1), (48, 2), (48, 1), (48, 1)):
        x = residual(x, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x))


def main():
    keras.utils.set_random_seed(6)
    rng = np.random.default_rng(6)
    photo, label = photographs(rng)
    model = build()
    print("parameters", model.count_params())
    objective = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    for epoch, rate in enumerate(WARM_RATES):
        model.compile(
            optimizer=keras.optimizers.SGD(rate), loss=objective, metrics=["accuracy"],
            jit_compile=False,
        )
        record = model.fit(photo, label, batch_size=30, epochs=1, verbose=0)
        loss, accuracy = record.history["loss"][0], record.history["accuracy"][0]
        print(f"epoch {epoch + 1}, rate {rate}: loss {loss:.3f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
