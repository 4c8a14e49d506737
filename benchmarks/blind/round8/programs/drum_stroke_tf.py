"""Recognise drum strokes of a percussion archive from mel spectrograms."""
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

RATE = 8000
STROKES = 8
EPOCHS = 9


def make_clips(count, seed):
    rng = np.random.default_rng(seed)
    stroke = rng.integers(0, STROKES, count)
    t = np.arange(RATE, dtype=np.float32) / RATE
    clips = 0.3 * rng.standard_normal((count, RATE), dtype=np.float32)
    for i, kind in enumerate(stroke):
        tone = np.sin(2 * np.pi * (120 + 55 * kind + rng.uniform(-15, 15)) * t)
        clips[i] += tone * np.exp(-t * (4 + kind))
    return clips, stroke.astype(np.int32)


mel = tf.signal.linear_to_mel_weight_matrix(48, 257, RATE, 60.0, 3800.0)


def spectrogram(clip, stroke):
    waves = tf.signal.stft(clip, frame_length=512, frame_step=64, fft_length=512)
    power = tf.square(tf.abs(waves))
    bands = tf.math.log(tf.matmul(power, mel) + 1e-4)
    bands = (bands - tf.reduce_mean(bands)) / (tf.math.reduce_std(bands) + 1e-3)
    return bands[..., None], stroke


def pipeline(clips, stroke, training):
    data = tf.data.Dataset.from_tensor_slices((clips, stroke))
    data = data.map(spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        data = data.shuffle(1000, seed=1)
    return data.batch(32).prefetch(tf.data.AUTOTUNE)


def build():
    return tf.keras.Sequential([
        tf.keras.layers.Input((118, 48, 1)),
        tf.keras.layers.Conv2D(8, 5, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(STROKES),
    ])


def main():
    tf.keras.utils.set_random_seed(2)
    train = pipeline(*make_clips(3200, 1), training=True)
    valid = pipeline(*make_clips(600, 2), training=False)
    model = build()
    model.compile(optimizer=tf.keras.optimizers.Adam(2e-3),
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"], jit_compile=False)
    log = model.fit(train, validation_data=valid, epochs=EPOCHS, verbose=0).history
    for epoch in range(0, EPOCHS, 2):
        print(f"epoch {epoch} loss {log['loss'][epoch]:.4f} "
              f"valid accuracy {log['val_accuracy'][epoch]:.3f}")


if __name__ == "__main__":
    main()
