"""This section counts the operations on the metadata server that a recorder needs in a large job.

The metadata server of a shared file system finds, opens, creates and renames files. This benchmark
starts `teho run` on one node, and gives it the variables of a Slurm job with 1,250 nodes. strace
counts the system calls with a path in the folder of the recordings, and the calls that list this
folder. Calls about a file that is already open are not counted. The folder is on a local disk. A
shared file system may need several messages for one call, and may answer other calls from a cache.

The rows *ten nodes* show ten times the figure of this node, from 60 s after the start until the end
of the program. *By files* means that the recorder cannot connect to the viewer. The benchmark then
writes a lease with the address of a port on which no program listens. The rows *at the start* and
*at the end* are about the node that begins the recording. The other nodes need fewer operations.
*Start of Python and Teho* is the number of operations on other files, such as modules of Python.
The files in `/proc`, `/sys` and `/dev` do not count, because they are never on a shared file
system.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import SCRIPTS, Figures, Row, say, stub_environment

_NODES = 1250
_STEADY_S = 60.0
"""Until then, the recorder finds the viewer, and notices that the folder of the files is new."""
_BEGIN_S = 10.0
_RENEW_S = 5.0
_CALL = re.compile(r"^\d+\s+([\d.]+) (\w+)\((.*)$")
_OF_OPEN_FILE = re.compile(r'stat\w*\(\d+<[^>]*>, ""')
_NOT_SHARED = re.compile(r'"/(?:proc|sys|dev)/|</(?:proc|sys|dev)[/>]')
_STRACE = ("strace", "-f", "-ttt", "-y", "-q", "-e", "trace=%file,getdents64")
_WAYS = {
    "unwatched": "without a viewer",
    "connection": "`teho top` watches over connections",
    "file": "`teho top` watches by files",
}


class _Counted(NamedTuple):
    per_s: float
    """Operations per second while the program runs."""
    first_s: int
    """Operations in the first second."""
    begin: int
    """Operations in the first 10 s."""
    end: int
    """Operations after the end of the program."""
    python: int
    """Operations on files outside the folder of the recordings, in the first 10 s."""


def measure(*, quick: bool) -> list[Row]:
    if not _can_trace():
        say("strace is not installed, or may not be used here")
        return []
    # By files, a node replaces its file every 104 s: three times are measured.
    seconds = 12 if quick else 374
    say(f"three recorders at the same time, {seconds} s")
    with ThreadPoolExecutor() as pool:
        found = dict(zip(_WAYS, pool.map(partial(_count, seconds), _WAYS), strict=True))
    rows = [
        Row(
            what=f"ten nodes, {_WAYS[way]}: operations per second",
            unit="1/s",
            ours=Figures.of(10 * counted.per_s),
            budget=1,
        )
        for way, counted in found.items()
    ]
    one = found["unwatched"]
    for what, count in (
        ("at the start, first second: operations", one.first_s),
        ("at the start, first 10 s: operations", one.begin),
        ("at the end: operations", one.end),
        ("start of Python and Teho: operations", one.python),
    ):
        rows.append(Row(what=f"one node, {what}", unit="operations", ours=Figures.of(count)))
    return rows


def _can_trace() -> bool:
    try:
        done = subprocess.run([*_STRACE, "true"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def _count(seconds: int, way: str) -> _Counted:
    with stub_environment() as env, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ended = folder / "ended"
        program = ["sh", "-c", f"sleep {seconds}; : > {ended}"]
        teho = [str(SCRIPTS / "teho"), "run", "--quiet", "--", *program]
        log = folder / "log"
        home = Path(env["TEHO_HOME"])
        home.mkdir()
        process = subprocess.Popen(
            [*_STRACE, "-o", str(log), *teho], env=env | _job(), cwd="/", stdout=subprocess.DEVNULL
        )
        try:
            with _viewer(way, home, env):
                process.wait()
        finally:
            process.terminate()
        return _read(log.read_text(errors="replace").splitlines(), str(home), str(ended))


def _job() -> dict[str, str]:
    """Return the variables of the first task of a step with one task on each node."""
    host = os.uname().nodename
    count, each = str(_NODES), f"1(x{_NODES})"
    hosts = f"{host},n[0001-{_NODES - 1:04d}]"
    return {
        "SLURM_JOB_ID": "4711",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NUM_TASKS": count,
        "SLURM_STEP_NUM_NODES": count,
        "SLURM_STEP_TASKS_PER_NODE": each,
        "SLURM_STEP_NODELIST": hosts,
        "SLURM_NTASKS": count,
        "SLURM_NNODES": count,
        "SLURM_TASKS_PER_NODE": each,
        "SLURM_JOB_NODELIST": hosts,
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
        "SLURM_NODEID": "0",
        "SLURMD_NODENAME": host,
    }


@contextlib.contextmanager
def _viewer(way: str, home: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Watch the run of a home in one way."""
    if way == "unwatched":
        yield
        return
    code = "connected" if way == "connection" else "leases"
    argv = [sys.executable, __file__, code, str(home)]
    viewer = subprocess.Popen(argv, env=dict(env), stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        viewer.terminate()
        viewer.wait()


def _watch(code: str, home: Path) -> None:
    """Be a viewer: `teho top`, or leases with an address that cannot be reached."""
    while not (found := [*home.glob("runs/*/nodes/*.json")]):
        time.sleep(0.1)
    run = found[0].parents[1]
    if code == "connected":
        teho = str(SCRIPTS / "teho")
        os.execv(teho, [teho, "top", str(run), "--format", "json"])
    import msgspec

    from teho.model.live import Lease
    from teho.observe.run_changes import announce
    from teho.store.layout import lease_folder, replace_file

    number = 0
    while True:
        number += 1
        lease = Lease(number=number, addresses=("127.0.0.1:9",), token="t")
        replace_file(lease_folder(run) / "other-1-t.json", msgspec.json.encode(lease))
        if number == 1:
            announce(run)
        time.sleep(_RENEW_S)


def _read(lines: list[str], home: str, ended: str) -> _Counted:
    """Count the calls of a log."""
    matches = [_CALL.match(line) for line in lines if not _OF_OPEN_FILE.search(line)]
    calls = [(float(call[1]), call[3]) for call in matches if call]
    begin_s = min(at_s for at_s, text in calls if home in text)
    end_s = min(at_s for at_s, text in calls if ended in text)
    moments = [at_s - begin_s for at_s, text in calls if home in text]
    until_s = end_s - begin_s
    steady_s = min(_STEADY_S, until_s / 2)
    steady = sum(steady_s <= at_s < until_s for at_s in moments)
    others = sum(
        at_s - begin_s < _BEGIN_S and home not in text and not _NOT_SHARED.search(text)
        for at_s, text in calls
    )
    return _Counted(
        per_s=steady / (until_s - steady_s),
        first_s=sum(at_s < 1.0 for at_s in moments),
        begin=sum(at_s < _BEGIN_S for at_s in moments),
        end=sum(at_s >= until_s for at_s in moments),
        python=others,
    )


if __name__ == "__main__":
    _watch(sys.argv[1], Path(sys.argv[2]))
