"""JAX regression; a thread parses the records and feeds the training loop by a queue."""
import json
import os
import queue
import tempfile
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np


def write_records(path, n=1200):
    rng = np.random.default_rng(3)
    with open(path, "w") as f:
        for i in range(n):
            x = rng.standard_normal((8, 6)).round(4)
            line = json.dumps({"x": x.tolist(), "y": x.sum(1).round(4).tolist()})
            f.write((line[:120] if i == 800 else line) + "\n")  # one record was cut off


def producer(path, q):
    while True:
        with open(path) as f:
            for line in f:
                rec = json.loads(line)
                time.sleep(0.04)
                q.put((np.asarray(rec["x"], np.float32), np.asarray(rec["y"], np.float32)))


def predict(p, x):
    return (jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"])[:, 0]


@jax.jit
def train_step(p, x, y):
    loss, g = jax.value_and_grad(lambda p: jnp.mean((predict(p, x) - y) ** 2))(p)
    return jax.tree.map(lambda a, b: a - 0.01 * b, p, g), loss


def main():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "records.jsonl")
        write_records(path)
        q = queue.Queue(maxsize=8)
        threading.Thread(target=producer, args=(path, q), name="producer", daemon=True).start()
        k1, k2 = jax.random.split(jax.random.PRNGKey(0))
        p = {"w1": jax.random.normal(k1, (6, 64)) * 0.3, "b1": jnp.zeros(64),
             "w2": jax.random.normal(k2, (64, 1)) * 0.1}
        for step in range(1, 100_000):
            x, y = q.get()
            p, loss = train_step(p, x, y)
            if step % 50 == 0:
                print(f"step {step} loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
