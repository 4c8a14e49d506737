"""This section shows how long `teho doctor` takes, with every check and the output.

In a job with eight stub GPUs, `teho doctor` imports the framework, such as PyTorch, to learn which
GPUs this framework can use. In the first two rows of the table, a Python module with a few lines
replaces the framework, because this machine cannot run PyTorch for CUDA. The last row uses the real
PyTorch. To count the GPUs, `teho doctor` loads only PyTorch's compiled library. The benchmark
compares the time for this with the time of a normal `import torch` in the same Python. These two
ways of loading PyTorch run alternately.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from common import ROOT, SCRIPTS, Row, interleave, measure_process, stub_environment, wall_ms_of

sys.path.insert(0, str(ROOT / "tests" / "doctor"))

from small_pythons import fake_torch, small_python  # the path above leads to it

_REAL = ROOT / ".frameworks" / "bin" / "python"
_SEES = ROOT / "src" / "teho" / "doctor" / "programs" / "sees.py"
_JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "0,1,2,3,4,5,6,7", "SLURM_CPUS_ON_NODE": "2"}
_BY_HAND = "import torch; print(torch.cuda.is_available(), torch.cuda.device_count())"


def measure(*, quick: bool) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder, stub_environment() as env:
        python = small_python(Path(folder), "torch-2.5.1+cu124")
        fake_torch(Path(folder), gpus=8)
        # If `teho doctor` finds a problem, such as a wrong clock, the measurement does not fail.
        page = f"'{SCRIPTS}/teho' doctor --python '{python}' >/dev/null 2>&1; [ $? -lt 126 ]"
        alone = {name: env[name] for name in env if not name.startswith("TEHO_STUB")}
        calls = {
            "job": partial(measure_process, ["sh", "-c", page], {**env, **_JOB}),
            "alone": partial(
                measure_process, ["sh", "-c", page], {**alone, "LD_LIBRARY_PATH": "/nonexistent"}
            ),
        }
        if _REAL.exists():
            calls["sees"] = partial(measure_process, [_REAL, _SEES, "pytorch"], env)
            calls["hand"] = partial(measure_process, [_REAL, "-c", _BY_HAND], env)
        if not quick:
            interleave(calls, 2)  # byte code and the file system's cache
        ended = interleave(calls, 1 if quick else 15)
    wall_ms = wall_ms_of(ended)
    rows = [
        Row(
            what="`teho doctor` in a job with 8 GPUs",
            unit="ms",
            ours=wall_ms["job"],
            budget=2000,
        ),
        Row(
            what="`teho doctor` without a GPU",
            unit="ms",
            ours=wall_ms["alone"],
            budget=2000,
        ),
    ]
    if "hand" in wall_ms:
        rows.append(
            Row(
                what="time in which `teho doctor` loads PyTorch's library and counts the GPUs",
                unit="ms",
                ours=wall_ms["sees"],
                peer="`import torch; torch.cuda.device_count()`",
                theirs=wall_ms["hand"],
            )
        )
    return rows
