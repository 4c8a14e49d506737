"""This section shows how many bytes a value needs in a recording, and the size of a month.

A *stored value* is one value in a row of a recording. Null values do not count as stored values. If
a row has the shares of time in which cores were busy, each core counts as one value. *Measured
values* are all stored values except the time, the node and the device of a row. The *recorded run*
is real: a small program ran with eight stub GPUs. For a *generated run*, the benchmark generates
one sample per second, and Teho's own code makes a recording from these samples. The samples are for
8 GPUs and 40 cores, and every sample has random noise. In the run of 720 h (a month), a row can
cover more than 32 samples. For such a row, the benchmark generates only 32 samples. So the row has
more noise than a real row, and noisy values need more space than smooth values. For comparison,
Prometheus also stores measured values. The documentation of Prometheus says that each value (which
Prometheus calls a sample) needs 1 to 2 bytes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from common import SCRIPTS, Figures, Row, say, stub_environment

_HERE = Path(__file__).parent
_PROGRAM = """
import time, tempfile
end = time.monotonic() + float({seconds})
with tempfile.TemporaryFile() as file:
    while time.monotonic() < end:
        file.write(bytes(range(256)) * 400)
        sum(number * number for number in range(20_000))
        time.sleep(0.02)
"""


def measure(*, quick: bool) -> list[Row]:
    days, month_days = (0.005, 0.01) if quick else (1.0, 30.0)
    seconds = 1 if quick else 60
    with stub_environment() as env:
        say(f"recording for {seconds} s")
        program = [sys.executable, "-c", _PROGRAM.format(seconds=seconds)]
        teho = [str(SCRIPTS / "teho"), "run", "--quiet", "--every", "100ms", "--"]
        subprocess.run([*teho, *program], env=env, check=True)
        rows = _rows(
            f"recorded run of {seconds} s, one sample every 0.1 s",
            env["TEHO_HOME"],
            env,
            budget=None,
        )
        for length in (days, month_days):
            with tempfile.TemporaryDirectory(prefix="teho-bench-") as home:
                say(f"generating {length:g} days")
                _python("generate.py", home, "--days", str(length), env=env)
                rows += _rows(
                    f"generated run of {length * 24:g} h, one sample every 1 s",
                    home,
                    env,
                    budget=1.3,
                )
    rows[-1] = Row(what=rows[-1].what, unit="MB", ours=rows[-1].ours, budget=20)
    return rows


def _rows(what: str, home: str, env: Mapping[str, str], budget: float | None) -> list[Row]:
    cells, readings, size_bytes = map(int, _python("values.py", home, env=env).split())
    return [
        Row(
            what=f"{what}: bytes per stored value",
            unit="B",
            ours=Figures.of(size_bytes / cells),
            budget=budget,
        ),
        Row(
            what=f"{what}: bytes per measured value",
            unit="B",
            ours=Figures.of(size_bytes / readings),
        ),
        Row(
            what=f"{what}: size of the recording of one node",
            unit="MB",
            ours=Figures.of(size_bytes / 1e6),
        ),
    ]


def _python(script: str, *arguments: str, env: Mapping[str, str]) -> str:
    """Run a program of this folder and return its output, so that this process needs no memory."""
    argv = [sys.executable, str(_HERE / script), *arguments]
    done = subprocess.run(argv, env=dict(env), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout
