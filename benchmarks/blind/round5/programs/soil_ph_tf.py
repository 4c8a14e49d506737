"""Predict soil acidity from field spectra with a variational bottleneck (TensorFlow)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

SAMPLES, BANDS, CODE = 26_000, 40, 8
BATCH, EPOCHS, WARMUP = 512, 10, 64


def field_samples():
    rng = np.random.default_rng(19)
    clay, carbon, moisture = rng.random((3, SAMPLES))
    band = np.linspace(0, 1, BANDS)
    spectrum = (0.3 + 0.4 * band[None] - 0.2 * clay[:, None] * np.exp(-((band - 0.7) / 0.06) ** 2)
                - 0.3 * carbon[:, None] * (1 - band[None])
                - 0.2 * moisture[:, None] * np.exp(-((band - 0.4) / 0.05) ** 2))
    spectrum += rng.normal(0, 0.01, spectrum.shape)
    acidity = 5 + 2 * clay - 1.5 * carbon * moisture + rng.normal(0, 0.05, SAMPLES)
    return spectrum.astype("float32"), acidity.astype("float32")


def prepare(spectrum, acidity):
    absorbed = -tf.math.log(tf.clip_by_value(spectrum, 0.01, 1.0))
    centred = absorbed - tf.reduce_mean(absorbed, axis=-1, keepdims=True)
    scaled = centred / (tf.math.reduce_std(centred, axis=-1, keepdims=True) + 1e-6)
    slope = scaled[..., 1:] - scaled[..., :-1]
    return tf.concat([scaled, slope], axis=-1), (acidity - 5.5) / 0.7


def pipeline(spectrum, acidity):
    data = tf.data.Dataset.from_tensor_slices((spectrum, acidity))
    data = data.shuffle(8192, seed=3)
    data = data.map(prepare)
    data = data.batch(BATCH, drop_remainder=True)
    return data


class Bottleneck(keras.Model):
    def __init__(self):
        super().__init__()
        self.first = keras.layers.Dense(128, activation="gelu")
        self.second = keras.layers.Dense(128, activation="gelu")
        self.code = keras.layers.Dense(2 * CODE)
        self.third = keras.layers.Dense(64, activation="gelu")
        self.out = keras.layers.Dense(1)

    def call(self, x):
        mean, spread = tf.split(self.code(self.second(self.first(x))), 2, axis=-1)
        noise = tf.random.stateless_normal(tf.shape(mean), seed=(1, 2))
        sample = mean + tf.exp(0.5 * spread) * noise
        return self.out(self.third(sample))[:, 0], mean, spread


def main():
    keras.utils.set_random_seed(2)
    data = pipeline(*field_samples())
    model = Bottleneck()
    model(tf.zeros((1, 2 * BANDS - 1)))
    optimizer = keras.optimizers.Adam(2e-3)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x, y, strength):
        with tf.GradientTape() as tape:
            guess, mean, spread = model(x)
            fit = tf.reduce_mean((guess - y) ** 2)
            prior = -0.5 * tf.reduce_mean(1 + spread - mean ** 2 - tf.exp(spread))
            loss = fit + strength * prior
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return fit

    number = 0
    for epoch in range(EPOCHS):
        fits = []
        for x, y in data:
            strength = 0.05 * min(1.0, number / WARMUP)
            fits.append(step(x, y, strength))
            number += 1
        if epoch % 3 == 0:
            print(f"epoch {epoch}: error {float(tf.add_n(fits)) / len(fits):.4f}")
    print(f"{number} steps, {model.count_params()} parameters")


if __name__ == "__main__":
    main()
