"""Tell kimono weaving patterns apart with a convolutional network in Keras."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

SIDE, PATTERNS, CLOTHS = 40, 8, 2400


def cloths(n, seed):
    """Waves, hemp leaves, checks and arrows, reduced to lattices of two directions."""
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    pattern = rng.integers(0, PATTERNS, n)
    shift = rng.uniform(0, 2 * np.pi, (n, 2, 1, 1))
    period = (3 + pattern % 4 + rng.normal(0, 0.1, n))[:, None, None]
    slant = np.where(pattern < 4, 0.0, 0.7)[:, None, None]
    a = np.sin(2 * np.pi * period * (xx + slant * yy) + shift[:, 0])
    b = np.sin(2 * np.pi * period * (yy - slant * xx) + shift[:, 1])
    image = np.sign(a * b) + rng.normal(0, 0.9, (n, SIDE, SIDE))
    return image[..., None].astype("float32"), pattern


def build():
    inputs = keras.layers.Input((SIDE, SIDE, 1))
    h = inputs
    for width in (32, 64, 96):
        h = keras.layers.Conv2D(width, 3, padding="same", use_bias=False)(h)
        h = keras.layers.BatchNormalization()(h)
        h = keras.layers.Activation("relu")(h)
        h = keras.layers.MaxPooling2D()(h)
    h = keras.layers.GlobalAveragePooling2D()(h)
    h = keras.layers.Dropout(0.2)(h)
    return keras.Model(inputs, keras.layers.Dense(PATTERNS)(h))


def main():
    keras.utils.set_random_seed(55)
    x, y = cloths(CLOTHS, 1)
    test_x, test_y = cloths(600, 2)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"])
    history = model.fit(x, y, epochs=4, batch_size=100, verbose=0,
                        validation_data=(test_x, test_y))
    for epoch, (loss, accuracy) in enumerate(zip(history.history["loss"],
                                                 history.history["val_accuracy"])):
        print(f"epoch {epoch}: loss {loss:.4f} test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
