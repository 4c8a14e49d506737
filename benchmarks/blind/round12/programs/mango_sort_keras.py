"""Sort mangoes on a conveyor by ripeness with a Keras convolutional net."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

SIDE = 40
CLASSES = 5
EPOCHS = 3


def conveyor(count, rng):
    ripe = rng.integers(0, CLASSES, size=count)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE - 0.5
    shape = np.exp(-(xx ** 2 / 0.06 + yy ** 2 / 0.1))[None, :, :, None]
    tint = np.stack([0.3 + 0.12 * ripe, 0.8 - 0.08 * ripe, 0.2 + 0.0 * ripe], axis=1)
    x = shape * tint[:, None, None] * rng.uniform(0.7, 1.3, size=(count, 1, 1, 1))
    x = x + rng.normal(0, 0.2, size=(count, SIDE, SIDE, 3))
    return x.astype(np.float32), ripe.astype(np.int32)


def turn(image, ripe):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 0.1), ripe


def build():
    net = tf.keras.Sequential([
        tf.keras.Input((SIDE, SIDE, 3)),
        tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(48, 3, padding="same", activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(CLASSES),
    ])
    net.compile(optimizer=tf.keras.optimizers.Adam(2e-3), metrics=["accuracy"],
                loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return net


def main():
    rng = np.random.default_rng(52)
    tf.keras.utils.set_random_seed(52)
    x, ripe = conveyor(3200, rng)
    held_x, held_ripe = conveyor(600, rng)
    train = (tf.data.Dataset.from_tensor_slices((x, ripe)).shuffle(3200, seed=1)
             .map(turn, num_parallel_calls=tf.data.AUTOTUNE).batch(64).prefetch(tf.data.AUTOTUNE))
    held = tf.data.Dataset.from_tensor_slices((held_x, held_ripe)).batch(200).cache()
    net = build()
    seen = net.fit(train, epochs=EPOCHS, validation_data=held, verbose=0).history
    for e in range(EPOCHS):
        print(f"epoch {e} loss {seen['loss'][e]:.4f} held-out right {seen['val_accuracy'][e]:.3f}")


if __name__ == "__main__":
    main()
