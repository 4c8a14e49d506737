"""Run the stages of a GPU day, each in a process with a deadline; `make gpu` does it.

python3 benchmarks/gpu/day.py                        all stages, on the GPU of this machine
python3 benchmarks/gpu/day.py signals truth          these, in this order
python3 benchmarks/gpu/day.py --rehearse             over a stand-in for the driver's library
python3 benchmarks/gpu/day.py --out FOLDER truth     leave the JSON files and the archive there

Run it with the Python that has the frameworks. It needs the standard library only, and pip to
install Teho from the folder of wheels. A stage that hangs, crashes or does not import still has its
JSON file, which says so, and the next stage begins.
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
"""What a stage may take; ten seconds later it is killed."""
_GRACE_S, _LEAST_S = 10.0, 5.0
LARGEST_BYTES = 15 * 2**20
"""Of one file that is left: what carries it away may take no more than 16 MiB."""
_TOKEN = "GPU_DAY_TOKEN"
"""A variable by which all that a stage starts is known, in whatever session it is."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the stages of a GPU day.")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"of {', '.join(STAGES)}")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU; figures are void")
    parser.add_argument("--out", type=Path, help="folder for what is left (build/gpu/results)")
    parser.add_argument("--seconds", type=float, help="what a stage may take")
    parser.add_argument("--within", type=float, help="what all stages may take [s]")
    parser.add_argument("--first", type=int, help="stop after this number of pieces")
    parser.add_argument("--python", default=sys.executable, help="has the frameworks")
    parser.add_argument("--teho", help="a Python that has Teho; installs nothing")
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
    """Run one stage to its end or its deadline, and return what it left.

    Args:
        stage: its name.
        argv: the command; it is given its seconds as well.
        out: where its JSON file lies.
        seconds: after which it ends by itself; soon after, it is killed.
        is_rehearsal: for the file of a stage that wrote none.
    """
    (out / f"{stage}.json").unlink(missing_ok=True)
    began, began_s = datetime.now(timezone.utc), time.monotonic()
    print(f"{stage}: at most {seconds:.0f} s", file=sys.stderr, flush=True)
    token = f"{os.getpid()}-{stage}-{began_s}"
    why = ""
    if seconds < _LEAST_S:
        why = "it was not begun: the time of the call was used up"
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
            why = f"it did not end by itself within {seconds:.0f} s and was killed"
        else:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            if code != 0:
                why = f"it ended with {code}: {''.join(last) or 'it printed no error'}"
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
    """End what a stage has started and left behind, by its pid."""
    for _ in range(2):  # what was being started meanwhile
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                is_ours = f"{_TOKEN}={token}".encode() in path.read_bytes().split(b"\0")
                if is_ours:
                    os.kill(int(path.parent.name), signal.SIGKILL)
            except OSError:  # it has ended, or is another user's
                continue


def pack(result: Result, kept: Path, out: Path) -> None:
    """Pack what all stages have kept into one archive, as far as it has room.

    Args:
        result: of the stage that ran just now; what of it is left out is noted there.
        kept: folders STAGE/NAME, of earlier calls too.
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
    """Say how a stage went, a line for each piece."""
    print(f"{result.stage}: {result.state} after {result.took_s:.0f} s {result.why}".rstrip())
    for piece in result.pieces:
        print(f"  {piece.name}: {piece.state}, {len(piece.rows)} figures {piece.why}".rstrip())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
