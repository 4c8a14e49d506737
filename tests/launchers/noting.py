"""What the programs of the launchers' tests share: where they leave word, and what."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

NOTES = Path(sys.argv[1])
"""The folder to write into: RANK.env, and RANK.npy with the gradient."""
STEPS = 3


def note_environment() -> None:
    """Keep the environment that this rank was started with: frameworks change their own."""
    began_with = Path("/proc/self/environ").read_bytes()
    (NOTES / f"{os.environ['RANK']}.env").write_bytes(began_with)
