"""This section shows what `teho import` costs for a log of one day, and `teho export` for 3 days.

The log is generated: 8 GPUs, one row for each GPU and second, as `nvidia-smi --query-gpu … -l 1`
prints them. For comparison, the CSV reader of Arrow reads the same file. Arrow only reads the rows.
Teho also checks the rows, joins the GPUs of each second and makes a recording. The run for the
exports is also generated, with 8 GPUs on each node (benchmarks/generate.py). In this benchmark, a
process that reads and discards all data replaces the store. So the table does not include the time
that a real store needs.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from big_report import generated
from common import CACHE, SCRIPTS, Figures, Row, interleave, measure_process, say, stub_environment

_HEAD = (
    "timestamp, index, utilization.gpu [%], utilization.memory [%], memory.used [MiB], "
    "power.draw [W], temperature.gpu\n"
)
_READ = "import sys, pyarrow.csv; print(pyarrow.csv.read_csv(sys.argv[1]).num_rows)"
_GPUS = 8
_SINK = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Sink(BaseHTTPRequestHandler):
    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        self.send_response(204)
        self.end_headers()
    def log_message(self, *_):
        pass
server = HTTPServer(("127.0.0.1", 0), Sink)
print(server.server_port, flush=True)
server.serve_forever()
"""


def measure(*, quick: bool) -> list[Row]:
    seconds, (nodes, days) = (120, (2, 0.02)) if quick else (86_400, (64, 3.0))
    with stub_environment() as env:
        log = _log(seconds)
        teho = SCRIPTS / "teho"
        logs = {
            "teho": partial(measure_process, [teho, "import", log], env),
            "arrow": partial(measure_process, [sys.executable, "-c", _READ, log], env),
        }
        ended = interleave(logs, 1 if quick else 3)
        exports = {
            form: partial(
                measure_process,
                [teho, "export", "last", "--to", form, "-o", Path(env["HOME"]) / form],
                {**env, "TEHO_HOME": str(generated(nodes, days, env))},
            )
            for form in ("parquet", "openmetrics")
        }
        ended |= interleave(exports, 1)
        with _sink() as address:
            home = generated(nodes, days, env)
            shutil.rmtree(home / "exports", ignore_errors=True)  # what earlier sinks have
            sent = {
                form: partial(
                    measure_process,
                    [teho, "export", "last", "--to", form, "--store", address],
                    {**env, "TEHO_HOME": str(home)},
                )
                for form in ("remote-write", "victoriametrics", "otlp")
            }
            ended |= interleave(sent, 1)
    rows_per_s = Figures.of(*(_GPUS * seconds / one.cpu_s for one in ended["teho"]))
    rows = [
        Row(what="`teho import`: rows of the log per second of CPU time", unit="1/s",
            ours=rows_per_s),
        Row(what="`teho import` of the log, wall time", unit="s",
            ours=Figures.of(*(one.wall_s for one in ended["teho"])),
            peer="`pyarrow.csv.read_csv`",
            theirs=Figures.of(*(one.wall_s for one in ended["arrow"]))),
        Row(what="`teho import` of the log, peak memory", unit="MB",
            ours=Figures.of(*(one.peak_bytes / 1e6 for one in ended["teho"]))),
    ]  # fmt: skip
    for form in [*exports, *sent]:
        what = f"`teho export --to {form}` of {nodes} nodes, {days:g} days"
        rows += [
            Row(what=f"{what}, wall time", unit="s",
                ours=Figures.of(*(one.wall_s for one in ended[form])), budget=60),
            Row(what=f"{what}, peak memory", unit="MB",
                ours=Figures.of(*(one.peak_bytes / 1e6 for one in ended[form])), budget=300),
        ]  # fmt: skip
    return rows


@contextmanager
def _sink() -> Iterator[str]:
    """Run a process that accepts all requests; yield its address."""
    argv = [sys.executable, "-c", _SINK]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def _log(seconds: int) -> Path:
    path = CACHE / f"nvidia-smi-{_GPUS}-gpus-{seconds}-s.csv"
    if path.exists():
        return path
    say(f"writing {path}")
    CACHE.mkdir(mode=0o700, exist_ok=True)
    begin = datetime(2026, 11, 1)  # noqa: DTZ001 - nvidia-smi prints no time zone
    unborn = path.with_suffix(".part")
    with unborn.open("w") as file:
        file.write(_HEAD)
        for second in range(seconds):
            at = f"{begin + timedelta(seconds=second):%Y/%m/%d %H:%M:%S}"
            for gpu in range(_GPUS):
                use = (7 * second + gpu) % 101
                file.write(
                    f"{at}.{4 * gpu:03d}, {gpu}, {use} %, {use // 2} %, {20000 + use} MiB, "
                    f"{100 + 2.5 * use:.2f} W, {40 + use // 5}\n"
                )
    return unborn.rename(path)
