"""What the programs of the launchers' tests share: where they leave word, and what."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

NOTES = Path(sys.argv[1])
"""The folder to write into: RANK.env, and RANK.npy with the gradient."""
STEPS = 3


def note_environment() -> None:
    """Keep the environment that this rank was started with: frameworks change their own."""
    began_with = Path("/proc/self/environ").read_bytes()
    (NOTES / f"{os.environ['RANK']}.env").write_bytes(began_with)


def leave() -> NoReturn:
    """End at once, as Python's own end is not safe here.

    A thread of gloo's may still drop the last gradients when Python has begun to end, and aborts
    the process then: 1 of 240 ranks of `ddp.py` without Teho, PyTorch 2.13, and its issue 190489.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
