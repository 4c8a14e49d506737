# Molecular-dynamics toy: one file per frame, numbered after the last one in the folder
import os
import tempfile
import numpy as np


def next_name(folder):
    taken = sorted(int(n.split("_")[1].split(".")[0]) for n in os.listdir(folder))
    return os.path.join(folder, f"frame_{taken[-1] + 1 if taken else 0}.npy")


with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(0)
    pos = rng.random((220, 3)) * 6
    vel = rng.normal(size=(220, 3)) * 0.01
    for step in range(5200):
        d = pos[:, None] - pos[None]
        r2 = (d**2).sum(-1) + 0.2
        force = (d / r2[..., None] ** 2).sum(1)
        vel = 0.99 * vel + 1e-4 * force
        pos = (pos + vel) % 6
        np.save(next_name(folder), pos.astype(np.float32))
        if step % 400 == 0:
            print(step, round(float((vel**2).sum()), 5), flush=True)
