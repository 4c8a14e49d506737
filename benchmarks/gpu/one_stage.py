"""Run one stage in this process. `day.py` starts this program, and ends it if it hangs."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

_HERE = Path(__file__).resolve().parent
# The first wins: stage modules before those of other benchmarks.
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parent / "faults")]

from common import environment  # noqa: E402 - the path above leads to it
from result import STAGES  # noqa: E402

from stage import Stage  # noqa: E402

_END_S = 8.0
"""Part of a stage's time that is kept for its end."""
_KEPT = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONPATH", "TEHO_STUB_NVML")
"""Variables that name the job's GPUs, the folders of the frameworks that a site's modules set, and
the stand-in that a test uses as the driver."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run one stage of a GPU day.")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--first", type=int)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args(arguments)
    deadline_s = time.monotonic() + max(1.0, options.seconds - _END_S)
    work = Path(tempfile.mkdtemp(dir=options.work, prefix=options.stage))
    env = environment(work) | {name: os.environ[name] for name in _KEPT if name in os.environ}
    if options.rehearse:
        from stand_in import stand_in

        env |= stand_in(work / "stand-in", env)
    stage = Stage(options, env, work, deadline_s)
    stage.look()
    import_module(f"stage_{options.stage}").measure(stage)
    stage.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
