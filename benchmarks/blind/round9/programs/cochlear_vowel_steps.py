"""Vowels as heard through a cochlear implant: a custom training loop in TensorFlow."""
import math
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

CLIPS, SAMPLES, EPOCHS, BATCH, VOWELS = 608, 16000, 7, 32, 6
ELECTRODES = tf.signal.linear_to_mel_weight_matrix(22, 513, 16000, 150.0, 7000.0)


def clips(rng):
    vowel = rng.integers(0, VOWELS, CLIPS)
    time = np.arange(SAMPLES, dtype=np.float32) / 16000
    sound = np.zeros((CLIPS, SAMPLES), np.float32)
    for index, kind in enumerate(vowel):
        pitch = rng.uniform(90, 240)
        for harmonic in range(1, 13):
            height = np.exp(-((harmonic * pitch - 350 - 160 * kind) / 250) ** 2)
            sound[index] += np.float32(height) * np.sin(np.float32(2 * np.pi * pitch * harmonic) * time)
    return sound + rng.normal(0, 0.3, sound.shape).astype(np.float32), vowel.astype(np.int32)


def electrodogram(sound, vowel):
    spectrum = tf.abs(tf.signal.stft(sound, 1024, 32, 1024))
    bands = tf.math.log1p(tf.matmul(spectrum, ELECTRODES))
    return bands[:448:2], vowel


def build():
    return keras.Sequential([
        keras.Input((224, 22)),
        layers.Conv1D(32, 5, strides=2, activation="relu"), layers.Conv1D(48, 5, strides=2, activation="relu"),
        layers.Conv1D(48, 3, strides=2, activation="relu"), layers.GlobalAveragePooling1D(),
        layers.Dense(64, activation="relu"), layers.Dense(VOWELS),
    ])


def main():
    keras.utils.set_random_seed(7)
    sound, vowel = clips(np.random.default_rng(7))
    data = tf.data.Dataset.from_tensor_slices((sound, vowel))
    data = data.cache().map(electrodogram, num_parallel_calls=2)
    data = data.shuffle(CLIPS, seed=7).batch(BATCH).prefetch(2)
    model = build()
    objective = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(bands, vowel, rate):
        with tf.GradientTape() as tape:
            scores = model(bands, training=True)
            loss = objective(vowel, scores)
        gradients = tape.gradient(loss, model.trainable_variables)
        for variable, gradient in zip(model.trainable_variables, gradients):
            variable.assign_sub(rate * gradient)
        hits = tf.reduce_sum(tf.cast(tf.argmax(scores, 1, tf.int32) == vowel, tf.int32))
        return loss, hits

    steps = EPOCHS * CLIPS // BATCH
    step = 0
    for epoch in range(EPOCHS):
        hits = 0
        for bands, kinds in data:
            rate = 0.02 * (1 + math.cos(math.pi * (step // 6 * 6) / steps))
            loss, right = train_step(bands, kinds, rate)
            hits += int(right)
            step += 1
        print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy {hits / CLIPS:.3f}")


if __name__ == "__main__":
    main()
