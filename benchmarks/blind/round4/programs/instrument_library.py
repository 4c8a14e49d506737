"""Match unknown spectra of many instruments against an LMDB reference library."""
import os
import tempfile

import lmdb
import numpy as np

REFERENCES = 4000
BINS = 2048
INSTRUMENTS = 54
CANDIDATES = 2000


def build(path, rng):
    env = lmdb.open(path, map_size=1 << 28)
    centres = np.linspace(0, 1, BINS, dtype=np.float32)
    with env.begin(write=True) as txn:
        for k in range(REFERENCES):
            peaks = rng.uniform(0, 1, 6).astype(np.float32)
            width = rng.uniform(0.002, 0.02, 6).astype(np.float32)
            spec = np.exp(-((centres - peaks[:, None]) / width[:, None]) ** 2).sum(axis=0)
            txn.put(b"ref%06d" % k, spec.astype(np.float32).tobytes())
    return env


def response(rng):
    mix = rng.normal(0, 0.02, (BINS, BINS)).astype(np.float32)
    mix[np.arange(BINS), np.arange(BINS)] += 1.0
    return mix


def candidates(env, keys):
    with env.begin(buffers=True) as txn:
        return np.stack([np.frombuffer(txn.get(b"ref%06d" % k), dtype=np.float32)
                         for k in keys])


def main():
    rng = np.random.default_rng(404)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        env = build(os.path.join(tmp, "library.lmdb"), rng)
        right = 0
        margin = []
        for instrument in range(INSTRUMENTS):
            keys = rng.choice(REFERENCES, CANDIDATES, replace=False)
            library = candidates(env, keys)
            measured = library @ response(rng)
            measured /= np.linalg.norm(measured, axis=1, keepdims=True)
            truth = rng.integers(0, CANDIDATES, 64)
            unknown = measured[truth] + rng.normal(0, 0.01, (64, BINS)).astype(np.float32)
            score = unknown @ measured.T
            order = np.partition(score, CANDIDATES - 2, axis=1)
            margin.append(float((order[:, -1] - order[:, -2]).mean()))
            right += int((score.argmax(axis=1) == truth).sum())
        env.close()
    print(f"identified {right} of {64 * INSTRUMENTS}, mean margin {np.mean(margin):.4f}")


if __name__ == "__main__":
    main()
