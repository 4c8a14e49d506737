"""Digits-like CNN, fed by tf.data."""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.random((3000, 28, 28, 1), dtype=np.float32)
y = rng.integers(0, 10, 3000)
ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(3000).batch(100).prefetch(2)
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.MaxPooling2D(),
    keras.layers.Conv2D(32, 3, activation="relu"), keras.layers.MaxPooling2D(),
    keras.layers.Flatten(), keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(ds, epochs=9, verbose=2)
