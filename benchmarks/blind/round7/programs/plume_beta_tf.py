"""A variational autoencoder of pollutant plume cross sections with KL annealing."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

GRID, LATENT, BATCH, EPOCHS = 24, 8, 64, 36


def plumes(n, rng):
    """Gaussian plumes with a random source, width and wind shear."""
    yy, xx = np.mgrid[0:GRID, 0:GRID] / GRID
    cx, cy = rng.uniform(0.2, 0.8, (2, n, 1, 1))
    width = rng.uniform(0.05, 0.2, (n, 1, 1))
    shear = rng.uniform(-1, 1, (n, 1, 1))
    plume = np.exp(-((xx - cx + shear * (yy - cy)) ** 2 + (yy - cy) ** 2) / (2 * width ** 2))
    return plume.reshape(n, -1).astype("float32")


def dense_stack(sizes, last):
    layers = [keras.layers.Dense(s, activation="relu") for s in sizes]
    return keras.Sequential(layers + [keras.layers.Dense(last)])


def main():
    tf.get_logger().setLevel("ERROR")
    keras.utils.set_random_seed(6)
    rng = np.random.default_rng(6)
    data = plumes(2560, rng)
    encoder = dense_stack([256, 192, 128], 2 * LATENT)
    decoder = dense_stack([128, 192, 256], GRID * GRID)
    encoder.build((None, GRID * GRID))
    decoder.build((None, LATENT))
    weights = encoder.trainable_variables + decoder.trainable_variables
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(weights)

    @tf.function
    def train_step(x, beta):
        with tf.GradientTape() as tape:
            mean, logvar = tf.split(encoder(x, training=True), 2, axis=1)
            z = mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))
            error = tf.reduce_mean(tf.reduce_sum((decoder(z, training=True) - x) ** 2, axis=1))
            kl = -0.5 * tf.reduce_mean(
                tf.reduce_sum(1 + logvar - mean ** 2 - tf.exp(logvar), axis=1))
            loss = error + beta * kl
        grads = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(grads, weights))
        return error, kl

    for epoch in range(EPOCHS):
        beta = min(1.0, (epoch + 1) / EPOCHS)
        order = rng.permutation(len(data))
        for start in range(0, len(data), BATCH):
            batch = tf.convert_to_tensor(data[order[start:start + BATCH]])
            error, kl = train_step(batch, beta)
        if epoch % 11 == 10:
            print(f"epoch {epoch}: error {float(error):.3f} kl {float(kl):.3f}")


if __name__ == "__main__":
    main()
