"""Estimate avocado firmness from acoustic images with a Keras net."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

SIDE = 32
FRUITS = 2200
BATCH = 32
EPOCHS = 6


def tap(count, rng):
    firm = rng.uniform(0, 1, size=count).astype(np.float32)
    t = np.arange(SIDE)
    x = np.empty((count, SIDE, SIDE, 2), np.float32)
    for i, f in enumerate(firm):
        tone = np.exp(-t / (6 + 14 * f))[:, None]
        band = np.exp(-((t - 8 - 12 * f) / 4.0) ** 2)[None]
        x[i, ..., 0] = tone * band
        x[i, ..., 1] = tone[::-1] * band
    x += rng.normal(0, 0.15, size=x.shape)
    return x, firm


def vary(image, firm):
    image = image * np.float32(np.random.uniform(0.8, 1.2))
    if np.random.random() < 0.5:
        image = image[:, ::-1]
    return np.ascontiguousarray(image), firm


def pipeline(x, firm):
    def fruits():
        for i in np.random.permutation(len(x)):
            yield x[i], firm[i]

    def varied(image, f):
        image, f = tf.numpy_function(vary, [image, f], [tf.float32, tf.float32])
        return tf.ensure_shape(image, (SIDE, SIDE, 2)), tf.ensure_shape(f, ())

    fruit = (tf.TensorSpec((SIDE, SIDE, 2), tf.float32), tf.TensorSpec((), tf.float32))
    data = tf.data.Dataset.from_generator(fruits, output_signature=fruit)
    return data.map(varied).batch(BATCH)


def build():
    net = tf.keras.Sequential([
        tf.keras.Input((SIDE, SIDE, 2)),
        tf.keras.layers.Conv2D(24, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(48, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(1),
    ])
    net.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss="mse")
    return net


def main():
    rng = np.random.default_rng(9)
    tf.keras.utils.set_random_seed(9)
    x, firm = tap(FRUITS, rng)
    held_x, held_firm = tap(480, rng)
    data = pipeline(x, firm)
    net = build()
    for epoch in range(EPOCHS):
        best, steps = np.inf, 0
        for image, f in data:
            net.train_on_batch(image, f)
            steps += 1
            if steps % 12 == 0:
                best = min(best, float(net.evaluate(held_x, held_firm, verbose=0)))
        last = float(net.evaluate(held_x, held_firm, verbose=0))
        print(f"epoch {epoch} held-out error {last:.5f} best {min(best, last):.5f}")


if __name__ == "__main__":
    main()
