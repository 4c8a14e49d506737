"""The example with DDP, for a few steps: `python ddp.py NOTES`."""

from __future__ import annotations

import sys

from noting import NOTES, STEPS, leave, note_environment

if __name__ == "__main__":
    import without_compiler  # noqa: F401
    import train_ddp  # isort: skip

    note_environment()
    sys.argv[1:] = ["--steps", str(STEPS), "--gradients", str(NOTES)]
    train_ddp.main()
    leave()
