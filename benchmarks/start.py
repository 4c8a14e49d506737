"""This section shows how long commands take, from start to end. They run alternately, many times.

`teho run -- true` runs the program `true`, which ends at once. Teho records this run with eight
stub GPUs, joins the rows of the recording into one file and prints the report. The files of Teho
and of the other tools are already in the file system's cache. `teho --help` does not load the code
of the commands, such as `teho run`. `gpustat --version` and `nvitop --version` are the fastest
commands of gpustat and nvitop. `python -S -c pass` is the shortest possible Python program.
"""

from __future__ import annotations

import sys
from functools import partial

from common import SCRIPTS, Figures, Row, interleave, measure_process, stub_environment, wall_ms_of

_PEERS: dict[str, list[str]] = {
    "gpustat --version": [str(SCRIPTS / "gpustat"), "--version"],
    "gpustat": [str(SCRIPTS / "gpustat")],
    "nvitop --version": [str(SCRIPTS / "nvitop"), "--version"],
    "python -S -c pass": [sys.executable, "-S", "-c", "pass"],
}


def measure(*, quick: bool) -> list[Row]:
    teho = str(SCRIPTS / "teho")
    ours = {"teho --help": [teho, "--help"], "teho run -- true": [teho, "run", "--", "true"]}
    theirs = {name: argv for name, argv in _PEERS.items() if (SCRIPTS / argv[0]).exists()}
    with stub_environment() as env:
        calls = {
            name: partial(measure_process, argv, env) for name, argv in {**ours, **theirs}.items()
        }
        if not quick:
            interleave(calls, 2)  # byte code and the file system's cache
        ended = interleave(calls, 1 if quick else 21)
    wall_ms = wall_ms_of(ended)
    rows = [
        Row(
            what="`teho --help`, wall time",
            unit="ms",
            ours=wall_ms["teho --help"],
            peer=f"`{peer}`",
            theirs=wall_ms[peer],
            budget=80,
        )
        for peer in theirs
    ]
    run_cpu = Figures.of(*(one.cpu_s * 1000 for one in ended["teho run -- true"]))
    return [
        *rows,
        Row(
            what="`teho run -- true`, wall time including the report",
            unit="ms",
            ours=wall_ms["teho run -- true"],
            budget=600,
        ),
        Row(
            what="`teho run -- true`, CPU time of all processes of the run", unit="ms", ours=run_cpu
        ),
    ]
