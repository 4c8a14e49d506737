"""This section shows how long `teho launch` takes to start the program `true`.

The commands run alternately, many times. `python -S -c pass` is the shortest possible Python
program. `teho launch` may take at most three times as long as this program: this is the budget.
torchrun and Accelerate run under a different Python than Teho. `tests/frameworks.sh` installs this
Python in the folder `.frameworks`. torchrun and Accelerate start one process, and stay in memory
until this process ends. In contrast, the process of `teho launch` becomes the process of the
started program, so `teho launch` does not stay in memory. For the last row of the table, the
benchmark starts 256 commands at the same time, because `srun` starts all ranks of a node at the
same time. The measured time in the last row ends when the last of the 256 commands ends.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from common import ROOT, SCRIPTS, Figures, Row, environment, interleave, measure_process, wall_ms_of

_TEHO = (str(SCRIPTS / "teho"), "launch", "--", "true")
_LEAST = (sys.executable, "-S", "-c", "pass")
_FRAMEWORKS = ROOT / ".frameworks" / "bin"
_PEERS: dict[str, tuple[str, ...]] = {
    "torchrun --standalone": (
        str(_FRAMEWORKS / "torchrun"), "--standalone", "--nproc-per-node=1", "--no-python", "true",
    ),
    "accelerate launch": (
        str(_FRAMEWORKS / "accelerate"), "launch", "--cpu", "--num_processes=1", "--num_machines=1",
        "--mixed_precision=no", "--dynamo_backend=no", "--no_python", "true",
    ),
}  # fmt: skip


def measure(*, quick: bool) -> list[Row]:
    rounds, ranks = (1, 16) if quick else (41, 256)
    peers = {name: argv for name, argv in _PEERS.items() if Path(argv[0]).exists()}
    with tempfile.TemporaryDirectory(prefix="teho-bench-") as folder:
        env = environment(Path(folder))
        short = {
            "teho": partial(measure_process, _TEHO, env),
            "python": partial(measure_process, _LEAST, env),
        }
        long = {name: partial(measure_process, argv, env) for name, argv in peers.items()}
        together = {
            "teho": partial(_start_together, _TEHO, env, ranks),
            "python": partial(_start_together, _LEAST, env, ranks),
        }
        if not quick:
            interleave({**short, **long}, 2)  # byte code and the file system's cache
        ended = {**interleave(short, rounds), **interleave(long, 1 if quick else 7)}
        last_s = interleave(together, 1 if quick else 5)
    wall_ms = wall_ms_of(ended)
    return [
        Row(
            what="`teho launch -- true`, wall time divided by the wall time of `python -S -c pass`",
            unit="×",
            ours=Figures.of(wall_ms["teho"].median / wall_ms["python"].median),
            budget=3,
        ),
        *(
            Row(
                what="`teho launch -- true`, wall time",
                unit="ms",
                ours=wall_ms["teho"],
                peer=f"`{peer}`",
                theirs=wall_ms[name],
            )
            for name, peer in {
                "python": "python -S -c pass",
                **{name: name for name in peers},
            }.items()
        ),
        Row(
            what=f"{ranks} × `teho launch -- true` started at the same time, "
            "time until the last one ends",
            unit="s",
            ours=Figures.of(*last_s["teho"]),
            peer="`python -S -c pass`",
            theirs=Figures.of(*last_s["python"]),
        ),
    ]


def _start_together(argv: Sequence[str], env: Mapping[str, str], ranks: int) -> float:
    """Start all ranks; return the seconds from the start of the first to the end of the last."""
    began_s = time.perf_counter()
    processes = [
        subprocess.Popen(
            argv,
            env={
                **env,
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(ranks),
            },
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for rank in range(ranks)
    ]
    codes = [process.wait() for process in processes]
    elapsed_s = time.perf_counter() - began_s
    if any(codes):
        raise RuntimeError(f"{argv}: exit codes {sorted(set(codes))}")
    return elapsed_s
