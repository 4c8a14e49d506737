"""The example with DDP, for a few steps: `python ddp.py NOTES`."""

from __future__ import annotations

import sys

from noting import NOTES, STEPS, leave, note_environment

if __name__ == "__main__":
    import train_ddp
    import without_compiler  # noqa: F401 - its import makes PyTorch start faster

    note_environment()
    # The model lives until `leave`. At its end, on a busy machine, PyTorch 2.13 may wait for ever:
    # it holds Python's lock and waits for a thread of gloo's, which drops the last gradients and
    # waits for this lock.
    kept = []
    make = train_ddp.DistributedDataParallel
    train_ddp.DistributedDataParallel = lambda model: kept.append(make(model)) or kept[0]
    sys.argv[1:] = ["--steps", str(STEPS), "--gradients", str(NOTES)]
    train_ddp.main()
    leave()
