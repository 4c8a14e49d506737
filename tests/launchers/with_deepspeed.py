"""The same training through DeepSpeed: `python with_deepspeed.py NOTES`."""

from __future__ import annotations

import deepspeed
import numpy as np
import torch
from noting import NOTES, STEPS, leave, note_environment
from train_ddp import BATCH, batches, build, gradient, load, share_of_loss

if __name__ == "__main__":
    note_environment()
    # A kernel for ranks of one node that would be compiled now, for minutes; gloo does without.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed(dist_backend="gloo")
    rank, size = deepspeed.comm.get_rank(), deepspeed.comm.get_world_size()
    model = build()
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        config={"train_batch_size": BATCH, "train_micro_batch_size_per_gpu": BATCH // size},
    )
    pixels, digits = load()
    for batch in batches(STEPS):
        engine.backward(share_of_loss(engine, pixels[batch], digits[batch], rank, size))
        last = gradient(model)  # a step of DeepSpeed's forgets it
        engine.step()
    np.save(NOTES / f"{rank}.npy", last)
    deepspeed.comm.destroy_process_group()
    leave()
