"""Tell quakes from blasts on three-component waveforms (Keras, TensorFlow backend)."""
import os
from pathlib import Path

SCRATCH = Path(os.environ.get("TMPDIR", ".")) / "quakes"
os.environ.setdefault("KERAS_HOME", str(SCRATCH / "keras"))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
from keras import layers

SAMPLES, POINTS, BATCH = 2000, 400, 32


def write_archive(path, seed=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, SAMPLES)
    t = np.arange(POINTS, dtype=np.float32)
    onset = rng.integers(40, 200, SAMPLES)
    wave = rng.standard_normal((SAMPLES, POINTS, 3), dtype=np.float32)
    for i in range(SAMPLES):
        s = np.maximum(t - onset[i], 0)
        decay = 40.0 if kind[i] else 110.0
        wave[i] += (2.5 * (s > 0) * np.exp(-s / decay) * np.sin(0.5 * s))[:, None] * rng.uniform(0.4, 1, 3)
    np.savez(path, wave=wave.astype(np.float32), kind=kind, onset=onset)


class Waveforms(keras.utils.PyDataset):
    def __init__(self, path, rows, batch, shuffle, **kw):
        super().__init__(**kw)
        self.archive = np.load(path)
        self.rows, self.batch, self.shuffle = np.array(rows), batch, shuffle
        self.rng = np.random.default_rng(0)
        self.on_epoch_end()

    def __len__(self):
        return len(self.rows) // self.batch

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.rows)

    def __getitem__(self, i):
        rows = self.rows[i * self.batch:(i + 1) * self.batch]
        x = self.archive["wave"][rows]
        x = x - x.mean(axis=1, keepdims=True)
        return x / x.std(axis=1, keepdims=True), self.archive["kind"][rows]


def build():
    inp = keras.Input((POINTS, 3))
    h = inp
    for width in (24, 32, 48):
        h = layers.Conv1D(width, 9, padding="same", activation="relu")(h)
        h = layers.MaxPooling1D(3)(h)
    h = layers.GlobalAveragePooling1D()(h)
    model = keras.Model(inp, layers.Dense(1, activation="sigmoid")(h))
    model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy", metrics=["accuracy"])
    return model


def main():
    keras.utils.set_random_seed(14)
    path = SCRATCH / "waveforms.npz"
    write_archive(path)
    train = Waveforms(path, range(0, 1800), BATCH, shuffle=True)
    test = Waveforms(path, range(1800, SAMPLES), BATCH, shuffle=False)
    model = build()
    model.fit(train, epochs=6, verbose=0)
    loss, acc = model.evaluate(test, verbose=0)
    print(f"test loss {loss:.2f}, accuracy {acc:.2f}")


if __name__ == "__main__":
    main()
