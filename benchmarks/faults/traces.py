"""Make the recordings of faults that need a GPU, on a machine without one.

python benchmarks/faults/traces.py FOLDER [--but RECORDINGS]    (two minutes; run.py starts it)

These recordings are not measurements. A stand-in for NVIDIA's library reports typical figures for
each fault, and a program spends its time in source lines that look like the lines of the real
program. The recorder, the probe and the data loader of PyTorch are real. If RECORDINGS has a
recording of the real fault (`make gpu STAGE=faults`), this program does not make one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parent)]

from common import ROOT, SCRIPTS, nvml_stub  # noqa: E402 - the path above leads to it

_SECONDS = 66
_FRAMEWORKS = ROOT / ".frameworks" / "bin" / "python"
_PROGRAM = """\
import functools, sys, time, types
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seconds, width, pin_memory = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "pinned"
copy_s, work_s, result_s = map(float, sys.argv[4:])
table = TensorDataset(torch.randn(512, width))
model = nn.Linear(width, width)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
# Stand for what lies on a GPU: what would wait there, waits here.
images = types.SimpleNamespace(cuda=functools.partial(time.sleep, copy_s))
kernels = types.SimpleNamespace(launch=functools.partial(time.sleep, work_s))
loss = types.SimpleNamespace(item=functools.partial(time.sleep, result_s))

began_s = time.monotonic()
while time.monotonic() - began_s < seconds:
    for batch in DataLoader(table, batch_size=16, pin_memory=pin_memory):
        images.cuda()
        kernels.launch()
        loss.item()
        optimizer.step()
"""


@dataclass(frozen=True)
class Trace:
    """What a fault looks like: to the driver's library, and to the probe."""

    name: str
    kind: str
    gpus: tuple[str, ...]
    """For each GPU `busy memory_mib power_w clock_mhz temperature_c throttle` and GPM figures."""
    copy_s: float = 0.001
    work_s: float = 0.02
    result_s: float = 0.0
    """How long a step copies, computes, and waits for its result."""
    width: int = 2048
    """Of the model."""
    pinned: bool = True


_WELL = "92 61440 610 1755 58 0"
_TURNS = "35 20480 260 1755 50 0 2=30 3=20 4=15 5=12 10=25"
_TINY = "96 4096 180 1980 45 0 2=6 3=4 4=0 5=0 10=5 12=4"
_PLAIN = "97 20480 540 1755 60 0 2=95 3=60 5=0 10=40 11=0 12=90 13=0"
_SMALL = "30 1024 120 1980 40 0 2=2 3=1 5=0 10=1 12=1"
_UNUSED = "0 0 70 345 30 0"

TRACES = (
    Trace("13-pageable-copies", "copies_from_pageable_memory", (_TURNS,), 0.02, 0.02, pinned=False),
    Trace("14-ping-pong", "waits_for_device", (_TURNS,), result_s=0.02),
    Trace("15-tiny-kernels", "gpu_launch_bound", (_TINY,)),
    Trace("16-problem-too-small", "problem_too_small", (_SMALL,), 0.0, 0.002, width=64),
    Trace("17-unbatched-solve", "gpu_launch_bound", (_TINY,)),
    Trace("18-no-tensor-cores", "gpu_tensor_cores_idle", (_PLAIN,)),
    Trace("20-unused-gpu", "gpu_never_used", (_WELL, _UNUSED)),
)


def main() -> int:
    folder = Path(sys.argv[1])
    real = Path(sys.argv[3]) if sys.argv[2:3] == ["--but"] else None
    traces = [trace for trace in TRACES if real is None or not (real / trace.name).exists()]
    if not traces:
        return 0
    with tempfile.TemporaryDirectory() as place:
        library = nvml_stub.build(Path(place) / "lib")
        with ThreadPoolExecutor(len(traces)) as pool:  # they sleep
            runs = pool.map(lambda trace: _record(trace, Path(place), library), traces)
            for trace, run in zip(traces, runs, strict=True):
                _keep(trace, run, folder / trace.name)
    return 0


def _record(trace: Trace, place: Path, library: Path) -> Path:
    """Return the recording of a trace."""
    own = place / trace.name
    own.mkdir()
    program, scenario = own / "train.py", own / "scenario.txt"
    program.write_text(_PROGRAM)
    lines = [f"0 {number} {gpu}" for number, gpu in enumerate(trace.gpus)]
    scenario.write_text("\n".join([f"gpus {len(trace.gpus)}", *lines, ""]))
    environment = {
        **os.environ,
        **nvml_stub.environment(library, scenario),
        "TEHO_HOME": str(own / "home"),
        "OMP_NUM_THREADS": "1",
    }
    times = map(str, (trace.copy_s, trace.work_s, trace.result_s))
    words = [str(_SECONDS), str(trace.width), "pinned" if trace.pinned else "pageable", *times]
    argv = [SCRIPTS / "teho", "run", "--probe", "auto", "--quiet", "--report", "none", "--"]
    subprocess.run([*argv, _FRAMEWORKS, program, *words], env=environment, check=True)
    (run,) = (own / "home" / "runs").glob("[!.]*")
    return run


def _keep(trace: Trace, run: Path, target: Path) -> None:
    """Put a recording where the benchmark looks for it, as if PyTorch had a GPU."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run, target / run.name)
    for path in target.glob("*/probe/*.jsonl"):
        text = path.read_text()
        text = text.replace('"cuda": null', '"cuda": "12.6"').replace('["cpu"]', '["cuda:0"]')
        path.write_text(text)
    expected = {"kind": trace.kind, "made_by": "benchmarks/faults/traces.py: no GPU was there"}
    (target / "expected.json").write_text(json.dumps(expected) + "\n")


if __name__ == "__main__":
    sys.exit(main())
