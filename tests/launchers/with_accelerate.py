"""The same training through Accelerate: `python with_accelerate.py NOTES`."""

from __future__ import annotations

import numpy as np
import torch
from accelerate import Accelerator
from noting import NOTES, STEPS, leave, note_environment
from train_ddp import batches, build, gradient, load, share_of_loss

if __name__ == "__main__":
    note_environment()
    accelerator = Accelerator(cpu=True)
    rank, size = accelerator.process_index, accelerator.num_processes
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    model, optimizer = accelerator.prepare(model, optimizer)
    pixels, digits = load()
    for batch in batches(STEPS):
        optimizer.zero_grad()
        accelerator.backward(share_of_loss(model, pixels[batch], digits[batch], rank, size))
        optimizer.step()
    np.save(NOTES / f"{rank}.npy", gradient(model))
    accelerator.end_training()
    leave()
