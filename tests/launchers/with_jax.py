"""A gradient that JAX's processes average: `python with_jax.py NOTES [told]`.

Within Slurm, JAX finds out by itself how many processes there are; else it is to be told.
"""

from __future__ import annotations

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from noting import NOTES, note_environment

if __name__ == "__main__":
    note_environment()
    told = {}
    if sys.argv[2:] == ["told"]:
        told["num_processes"] = int(os.environ["WORLD_SIZE"])
        told["process_id"] = int(os.environ["RANK"])
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(**told)
    rank, size = jax.process_index(), jax.process_count()
    random = np.random.default_rng(0)
    inputs, targets = random.random((64, 8)), random.random(64)

    def loss(weights, inputs, targets):
        return jnp.mean((inputs @ weights - targets) ** 2)

    own = jax.grad(loss)(jnp.zeros(8), inputs[rank::size], targets[rank::size])
    every = multihost_utils.process_allgather(own)
    np.save(NOTES / f"{rank}.npy", np.mean(every.reshape(size, 8), axis=0))
