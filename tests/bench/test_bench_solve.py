"""The example `solve`: each part of the work is timed separately, on the CPU and on the GPU."""

from __future__ import annotations

from pathlib import Path

from served import serve
from standins import with_cupy

POINT = {"systems": 2, "rows": 3}
MATRICES, RIGHT_SIDES = 2 * 3 * 3 * 8, 2 * 3 * 8


def test_a_cpu_makes_the_numbers_and_solves_the_systems() -> None:
    with serve("solve", "numpy") as program:
        phases = program.phases(POINT)
    assert list(phases) == ["kernel", "generate on the host", "end to end"]


def test_a_gpu_gets_copies_or_makes_the_numbers_itself(tmp_path: Path) -> None:
    with serve("solve", "cupy", "gpu", env=with_cupy(tmp_path)) as program:
        phases = program.phases(POINT)
    assert list(phases) == [
        "kernel",
        "copy in",
        "copy out",
        "generate on the host",
        "end to end",
        "generate on the device",
        "end to end, data generated on the device",
    ]
    assert phases["copy in"]["bytes"] == MATRICES + RIGHT_SIDES
    assert phases["copy out"]["bytes"] == RIGHT_SIDES
