"""Run the stages of a GPU day, each in a process with a deadline (`make gpu`).

python3 benchmarks/gpu/day.py                        all stages, on the GPU of this machine
python3 benchmarks/gpu/day.py signals truth          these stages, in this order
python3 benchmarks/gpu/day.py --rehearse             without a GPU, with a stand-in for the driver
python3 benchmarks/gpu/day.py --out FOLDER truth     write the JSON files and the archive there

Run this program with the Python that has the frameworks. It needs only the standard library, and
pip to install Teho from the folder of wheels. If a stage hangs, crashes or cannot be imported, its
JSON file says so, and the next stage begins.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]

from install import InstallError, install  # noqa: E402 - the path above leads to it
from result import (  # noqa: E402
    RECORDINGS,
    STAGES,
    Result,
    StageState,
    read_result,
    write_result,
)

ROOT = _HERE.parents[1]
BUILD = ROOT / "build" / "gpu"
STAGE_S, REHEARSAL_S = 520.0, 78.0
"""The longest time of a stage. Ten seconds later, the stage is killed."""
_GRACE_S, _LEAST_S = 10.0, 5.0
LARGEST_BYTES = 15 * 2**20
"""The largest size of one result file: the way back takes files of at most 16 MiB."""
_TOKEN = "GPU_DAY_TOKEN"
"""A variable that marks all processes that a stage starts, in any session."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the stages of a GPU day.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"some of {', '.join(STAGES)}")
    parser.add_argument("--rehearse", action="store_true", help="use no GPU; figures mean nothing")
    parser.add_argument("--out", type=Path, help="folder for the results (build/gpu/results)")
    parser.add_argument("--seconds", type=float, help="longest time of a stage [s]")
    parser.add_argument("--within", type=float, help="longest time of all stages [s]")
    parser.add_argument("--first", type=int, help="stop after this number of pieces")
    parser.add_argument("--python", default=sys.executable, help="Python that has the frameworks")
    parser.add_argument("--teho", help="a Python that has Teho: install nothing")
    options = parser.parse_args(arguments)
    unknown = [stage for stage in options.stages if stage not in STAGES]
    if unknown:
        parser.error(f"no stage {unknown[0]!r}, expected some of {', '.join(STAGES)}")
    began_s = time.monotonic()
    kind = "rehearsal" if options.rehearse else "results"
    kept = BUILD / f"{kind}-kept"
    out = (options.out or BUILD / kind).resolve()
    out.mkdir(parents=True, exist_ok=True)
    try:
        python = options.teho or str(install(Path(options.python), BUILD))
    except InstallError as error:
        sys.exit(f"Teho could not be installed: {error}")
    programs = Path(options.python).absolute()  # a venv's Python is a link: it stays one
    most_s = options.seconds or (REHEARSAL_S if options.rehearse else STAGE_S)
    until_s = began_s + (options.within or float("inf"))
    words = ["--python", str(programs), *(["--rehearse"] if options.rehearse else [])]
    with tempfile.TemporaryDirectory(prefix="gpu-day-") as work:
        for stage in options.stages or STAGES:
            shutil.rmtree(kept / stage, ignore_errors=True)
            seconds = min(most_s, until_s - time.monotonic() - _GRACE_S)
            argv = [python, _HERE / "one_stage.py", stage, "--out", out, "--work", work, *words]
            argv += ["--kept", kept / stage]
            argv += [] if options.first is None else ["--first", options.first]
            result = run_stage(
                stage, list(map(str, argv)), out, seconds, is_rehearsal=options.rehearse
            )
            pack(result, kept, out)
            say(result)
    return 0


def run_stage(
    stage: str, argv: Sequence[str], out: Path, seconds: float, *, is_rehearsal: bool
) -> Result:
    """Run one stage to its end or its deadline, and return its result.

    Args:
        stage: the name of the stage.
        argv: the command; this function adds the option `--seconds`.
        out: the folder of the stage's JSON file.
        seconds: the stage ends by itself after this time; soon after, it is killed.
        is_rehearsal: for the file of a stage that wrote none.
    """
    (out / f"{stage}.json").unlink(missing_ok=True)
    began, began_s = datetime.now(timezone.utc), time.monotonic()
    print(f"{stage}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
    token = f"{os.getpid()}-{stage}-{began_s}"
    why = ""
    if seconds < _LEAST_S:
        why = "the stage did not begin, because the time of the call was used up"
        result = Result(stage, began.isoformat(timespec="seconds"), is_rehearsal=is_rehearsal)
        result.state, result.why = StageState.BROKEN, why
        write_result(result, out)
        return result
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*argv, "--seconds", f"{seconds:g}"],
            env={**os.environ, _TOKEN: token},
            stdin=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=seconds + _GRACE_S)
        except subprocess.TimeoutExpired:
            why = f"the stage did not end by itself within {seconds:.0f} s, so it was killed"
        else:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            if code != 0:
                why = f"the stage ended with {code}: {''.join(last) or 'no error was printed'}"
        _kill_all(token)
        process.wait()
    try:
        result = read_result(out / f"{stage}.json")
    except ValueError:
        result = Result(stage, began.isoformat(timespec="seconds"), is_rehearsal=is_rehearsal)
        why = why or "it left no file"
    if why:
        result.state, result.why = StageState.BROKEN, why
    result.took_s = round(time.monotonic() - began_s, 1)
    write_result(result, out)
    return result


def _kill_all(token: str) -> None:
    """End the processes that a stage has started and left behind."""
    for _ in range(2):  # the second time for processes that were just being started
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                is_ours = f"{_TOKEN}={token}".encode() in path.read_bytes().split(b"\0")
                if is_ours:
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except OSError:  # it has ended, or is another user's
                continue


def pack(result: Result, kept: Path, out: Path) -> None:
    """Pack the kept files of all stages into one archive, until the archive is full.

    Args:
        result: the result of the latest stage; this function notes which of its files are left out.
        kept: has folders STAGE/NAME, also from earlier calls.
        out: where the archive is written.
    """
    archive, room = out / RECORDINGS, LARGEST_BYTES
    part = archive.with_suffix(".part")
    stages = [stage for stage in STAGES if (kept / stage).is_dir()]
    with tarfile.open(part, "w:gz") as packed:
        for path in (path for stage in stages for path in sorted((kept / stage).iterdir())):
            with tempfile.TemporaryFile() as alone, tarfile.open(fileobj=alone, mode="w:gz") as one:
                one.add(path)
                one.close()
                size = alone.tell()
            has_room = size <= room
            if has_room:
                packed.add(path, f"{path.parent.name}/{path.name}")
                room -= size
            if path.parent.name == result.stage:
                result.files[path.name] = size if has_room else -1
    part.replace(archive)
    write_result(result, out)


def say(result: Result) -> None:
    """Print how a stage ended, with a line for each piece."""
    print(f"{result.stage}: {result.state} after {result.took_s:.0f} s {result.why}".rstrip())
    for piece in result.pieces:
        print(f"  {piece.name}: {piece.state}, {len(piece.rows)} figures {piece.why}".rstrip())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
