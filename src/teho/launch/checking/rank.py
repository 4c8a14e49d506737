"""Run one rank of the check, from its options to its exit code."""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from statistics import median

from teho.launch.checking.connection import ConnectError, Connection, StoppedError, connect
from teho.launch.checking.peers import MAGIC, RendezvousError, open_rendezvous
from teho.launch.checking.rendezvous import Rendezvous
from teho.launch.checking.report import as_json, as_text
from teho.launch.checking.ring import Ring, RingError
from teho.launch.checking.task import CheckTask, TaskError, read_check_task

__all__ = ["run"]

_INTERRUPTED = 130
_LEAVE_S = 5.0
_SECOND_TRY_S = 2.0
_CHECKSUM_BYTES = 1 << 20
_CHECKSUMS = 7
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def run(arguments: list[str]) -> int:
    """Take part in the check; rank 0 leads it and prints the report. Return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a container may know ASCII only
    options = _parse(arguments)
    try:
        task = read_check_task(os.environ)
    except TaskError as error:
        _print_error(f"teho launch --check: {error}")
        return 2
    try:
        if options.torch:
            from teho.launch.checking.collective import perform

            perform(task, options.timeout)
            return 0
        return _lead(task, options) if task.rank == 0 else _participate(task, options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process only has to exit


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("teho launch --check")
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=1.0,
        help="approximate length of each measurement, in seconds",
    )
    parser.add_argument(
        "--timeout", type=seconds, default=60.0, help="seconds to wait for all ranks"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return number


def _lead(task: CheckTask, options: argparse.Namespace) -> int:
    """Lead the check, and take part in it like every other rank."""
    try:
        server = open_rendezvous(task)
    except RendezvousError as error:
        try:
            connection = connect(task, _SECOND_TRY_S)
        except ConnectError:
            _print_error(f"{error}")
            return 1
        # Another task with rank 0 listens already. It reports both tasks.
        return _take_part(connection, task, options)
    participant = threading.Thread(target=_participate, args=(task, options), daemon=True)
    participant.start()
    rendezvous = Rendezvous(server, task, options.timeout, options.seconds)
    try:
        result = rendezvous.run()
    except KeyboardInterrupt:
        _print_error(f"{task.name}: the check was interrupted during {rendezvous.doing}")
        raise
    finally:
        participant.join(_LEAVE_S)
    sys.stdout.write(f"{as_json(result) if options.json else as_text(result)}\n")
    sys.stdout.flush()
    return 1 if result.findings else 0


def _participate(task: CheckTask, options: argparse.Namespace) -> int:
    try:
        connection = connect(task, options.timeout)
    except ConnectError as error:
        _print_error(f"{error}")
        return 1
    return _take_part(connection, task, options)


def _take_part(connection: Connection, task: CheckTask, options: argparse.Namespace) -> int:
    """Go through all stages. Return 0 when rank 0, which has the verdict, ends the check."""
    ring = Ring(task, options.timeout)
    try:
        met = connection.ask("hello", **_introduction(task, ring.port))
        try:
            if task.world_size > 1:
                ring.connect(met["host"], met["port"], met["name"])
            connection.ask("linked")
            connection.ask("worked", work_s=_checksum_s())
            if task.world_size > 1:
                connection.ask("echoed", round_trip_s=ring.echo())
                connection.ask("streamed", bytes_per_s=ring.stream(options.seconds))
        except RingError as error:
            connection.ask("failed", why=f"{error}")
        script = Path(__file__).resolve().parents[1] / "check.py"
        timeout = ("--timeout", str(options.timeout))
        connection.run_program([sys.executable, str(script), "--torch", *timeout])
    except StoppedError:
        return 0
    except ConnectError as error:
        _print_error(f"{error}")
        return 1


def _introduction(task: CheckTask, port: int) -> dict[str, object]:
    """Return the first message of this rank; `port`: for the link of the previous rank."""
    return {
        "magic": MAGIC,
        "rank": task.rank,
        "world_size": task.world_size,
        "local_rank": task.local_rank,
        "local_world_size": task.local_world_size,
        "node_rank": task.node_rank,
        "node": task.node,
        "host": task.host,
        "pid": os.getpid(),
        "cores": sorted(os.sched_getaffinity(0)),
        "visible": {name: os.environ[name] for name in _VISIBLE if name in os.environ},
        "port": port,
    }


def _checksum_s() -> float:
    """Return the time of a checksum: longer if cores are shared, slow or throttled."""
    data = bytes(_CHECKSUM_BYTES)
    times_s = []
    for _ in range(_CHECKSUMS):
        began_s = time.perf_counter()
        hashlib.sha256(data)
        times_s.append(time.perf_counter() - began_s)
    return median(times_s)


def _print_error(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
