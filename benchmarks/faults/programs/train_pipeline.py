"""Train a small network on a tf.data pipeline: images, files of records, or a Python generator."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

CLASSES = 10
SIDE = 32
LENGTH = 3 * SIDE * SIDE
BATCH = 16
RECORDS = 4
"""In one file."""


def encoded(count: int, size: int) -> tf.Tensor:
    """Return random images as JPEG files in memory."""
    rng = np.random.default_rng(0)
    pixels = (rng.integers(0, 256, (size, size, 3), np.uint8) for _ in range(count))
    return tf.stack([tf.io.encode_jpeg(one) for one in pixels])


def decoded(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return an image [LENGTH], cut to size."""
    image = tf.image.resize(tf.io.decode_jpeg(file, channels=3), (SIDE, SIDE))
    return tf.reshape(image / 255.0, [LENGTH]), label


def flipped(file: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the same, flipped at random."""
    image, label = decoded(file, label)
    image = tf.image.random_flip_left_right(tf.reshape(image, [SIDE, SIDE, 3]))
    return tf.reshape(image, [LENGTH]), label


def images(options: argparse.Namespace) -> tf.data.Dataset:
    """Decode images."""
    labels = tf.range(options.images) % CLASSES
    source = tf.data.Dataset.from_tensor_slices((encoded(options.images, options.size), labels))
    parallel = tf.data.AUTOTUNE if options.parallel else None
    dataset = source.map(flipped if options.flip else decoded, num_parallel_calls=parallel)
    return dataset.cache() if options.cache else dataset


def records(options: argparse.Namespace) -> tf.data.Dataset:
    """Read small files of records, several at the same time."""
    paths = sorted(map(str, (options.data / "records").glob("*.tfrecord")))

    def parsed(record: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        values = tf.io.decode_raw(record, tf.float32)
        return tf.reshape(values[1:], [LENGTH]), tf.cast(values[0], tf.int32)

    parallel = tf.data.AUTOTUNE if options.parallel else None
    dataset = tf.data.Dataset.from_tensor_slices(paths)
    dataset = dataset.interleave(tf.data.TFRecordDataset, num_parallel_calls=parallel)
    return dataset.map(parsed, num_parallel_calls=tf.data.AUTOTUNE)


def simulated(options: argparse.Namespace) -> tf.data.Dataset:
    """Get samples from an instrument that answers after a while."""

    def samples() -> Iterator[tuple[np.ndarray, int]]:
        rng = np.random.default_rng(options.seed)
        for number in range(options.images):
            if number % BATCH == 0:
                time.sleep(0.02)
            yield rng.standard_normal(LENGTH, np.float32), number % CLASSES

    kinds = (tf.TensorSpec([LENGTH], tf.float32), tf.TensorSpec([], tf.int32))
    choices = tf.data.Options()
    choices.experimental_optimization.inject_prefetch = False  # as before TensorFlow 2.9
    dataset = tf.data.Dataset.from_generator(samples, output_signature=kinds)
    return dataset.with_options(choices)


def write(folder: Path, count: int) -> None:
    """Write files of records."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for number in range(count):
        with tf.io.TFRecordWriter(str(folder / f"{number:04d}.tfrecord")) as file:
            for label in range(RECORDS):
                values = rng.standard_normal(1 + LENGTH).astype(np.float32)
                values[0] = label
                file.write(values.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--from", dest="source", choices=["images", "records", "generator"])
    parser.add_argument("--images", type=int, default=320)
    parser.add_argument("--size", type=int, default=320)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--prefetch", action="store_true")
    parser.add_argument("--cache", action="store_true")
    parser.add_argument("--flip", action="store_true")
    parser.add_argument("--fit", action="store_true", help="train with Keras's own loop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    if options.source == "records" and not (options.data / "records" / "0199.tfrecord").exists():
        write(options.data / "records", 200)
    if not options.seconds:
        return
    keras.utils.set_random_seed(options.seed)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    make = {"images": images, "records": records, "generator": simulated}[options.source]
    dataset = make(options).batch(BATCH, drop_remainder=True)
    if options.prefetch:
        dataset = dataset.prefetch(tf.data.AUTOTUNE)
    layers = [keras.layers.Dense(options.width, activation="relu") for _ in range(3)]
    model = keras.Sequential([keras.layers.Input((LENGTH,)), *layers, keras.layers.Dense(CLASSES)])
    losses = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD()
    if options.fit:
        fit(model, losses, optimizer, dataset, options.seconds)
        return

    @tf.function
    def train_step(features: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = losses(labels, model(features, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    steps, began_s = 0, time.monotonic()
    first_s = began_s
    while time.monotonic() - began_s < options.seconds:
        for features, labels in dataset:
            loss = float(train_step(features, labels))
            if steps == 0:
                first_s = time.monotonic()
            steps += 1
            if time.monotonic() - began_s >= options.seconds:
                break
    elapsed_s = time.monotonic() - first_s
    print(f"{steps} steps, loss {loss:.3f}, {(steps - 1) / elapsed_s:.3f} steps/s")


def fit(
    model: keras.Model,
    losses: keras.losses.Loss,
    optimizer: keras.optimizers.Optimizer,
    dataset: tf.data.Dataset,
    seconds: float,
) -> None:
    """Train with `Model.fit` for a time."""
    times: list[float] = []
    began_s = time.monotonic()

    class Until(keras.callbacks.Callback):
        def on_train_batch_end(self, *_: object, **__: object) -> None:
            times.append(time.monotonic())
            self.model.stop_training = times[-1] - began_s >= seconds

    model.compile(optimizer, losses)
    model.fit(dataset, epochs=100_000, callbacks=[Until()], verbose=0)
    speed = (len(times) - 1) / (times[-1] - times[0])
    print(f"{len(times)} steps, {speed:.3f} steps/s")


if __name__ == "__main__":
    main()
