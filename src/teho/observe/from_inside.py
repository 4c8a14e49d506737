"""Records this process for a while, such as the kernel of a notebook while a cell runs.

The recorder is a new process and not a fork: this process may have threads and use GPUs. It ends
when it is asked to, or when this process has ended.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import IO, cast

import msgspec

from teho.devices.host.proctree import METRICS, ProcessTree
from teho.errors import TehoError
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import End, Run, Trouble
from teho.observe.plan import RecordingPlan
from teho.observe.recorder import Recorder
from teho.observe.recording import describe, end_recording, node_name
from teho.observe.wanted import Wanted
from teho.process.json_lines import LineReader, send, send_all, wait_for
from teho.schedulers.task import Task
from teho.store.layout import create_run_directory

__all__ = ["RecordedProcess", "record_process"]

_START_S = 30.0
"""A network file system that has not cached Teho is slow."""
_SEAL_S = 15.0
_PACKAGE = Path(__file__).parents[2]
_PROBE = "TEHO_PROBE"


def record_process(control: int, back: int) -> None:
    """In the recorder's process: wait for the plan, and record until the end.

    Args:
        control: descriptor from which the plan is read.
        back: descriptor for the answers.
    """
    reader = LineReader(control)
    send(back, ready=True)
    while not reader.closed:
        wait_for([reader.descriptor])
        for message in reader.messages():
            if "plan" in message:
                plan = msgspec.convert(message["plan"], RecordingPlan)
                # This process replaces the supervisor: what it starts does not count.
                own = msgspec.structs.replace(plan, supervisor_pid=os.getpid())
                Recorder(own, reader, back, plan.supervisor_pid).run()
                return


class RecordedProcess:
    """The recording of this process, from now until `finish`.

    Args:
        wanted: what is to be recorded.

    Attributes:
        directory: the recording.

    Raises:
        TehoError: the recorder cannot be started.
        OSError: the recording cannot be written.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._recorder = _start()
        self._control = cast("IO[bytes]", self._recorder.stdin).fileno()
        self._messages = LineReader(cast("IO[bytes]", self._recorder.stdout).fileno())
        try:
            self._await_start()
            used_before = _used(self._recorder.pid)
            self._started_s = time.monotonic()
            self._cpu_s = _cpu_s()
            self._run = describe(wanted, self._started_s)
            self.directory = create_run_directory(
                wanted.home, self._run.id, msgspec.json.encode(self._run)
            ).absolute()
            plan = RecordingPlan(
                directory=str(self.directory),
                node=node_name(Task(started_by="")),
                period_s=wanted.period_s,
                started_s=self._started_s,
                started_at=self._run.started_at,
                supervisor_pid=os.getpid(),
                used_before=used_before,
            )
            send_all(self._control, plan=msgspec.to_builtins(plan))
        except BaseException:
            self._close()
            raise

    def _await_start(self) -> None:
        until_s = time.monotonic() + _START_S
        while not self._messages.closed and time.monotonic() < until_s:
            self._messages.wait(until_s - time.monotonic())
            if any("ready" in message for message in self._messages.messages()):
                return
        raise TehoError(f"the recorder did not start within {_START_S:g} s")

    def finish(self, error: BaseException | None) -> Run:
        """End the recording, and return its description with the end.

        Args:
            error: with which the recorded part ended; None: it ended normally.

        Raises:
            OSError: the end cannot be written.
        """
        elapsed_s = time.monotonic() - self._started_s
        cpu_s = _cpu_s() - self._cpu_s
        send(self._control, end=elapsed_s)
        troubles = self._close()
        code = None if isinstance(error, KeyboardInterrupt) else int(error is not None)
        started_at = self._run.started_at
        end = End(
            at=min(started_at + timedelta(seconds=elapsed_s), datetime.now(timezone.utc)),
            elapsed_s=round(elapsed_s, 6),
            exit_code=code,
            signal=int(signal.SIGINT) if code is None else None,
            cpu_s=round(cpu_s, 6),
        )
        run = msgspec.structs.replace(self._run, end=end, troubles=tuple(troubles))
        end_recording(self.directory, run)
        return run

    def _close(self) -> list[Trouble]:
        """End the recorder, and return its troubles."""
        troubles = []
        until_s = time.monotonic() + _SEAL_S
        cast("IO[bytes]", self._recorder.stdin).close()
        while not self._messages.closed and time.monotonic() < until_s:
            self._messages.wait(until_s - time.monotonic())
            for message in self._messages.messages():
                if "trouble" in message:
                    elapsed_s = message.get("elapsed_s", 0.0)
                    troubles.append(Trouble(elapsed_s=elapsed_s, what=message["trouble"]))
        if not self._messages.closed:
            self._recorder.kill()
            what = "the recorder did not finish in time and was killed"
            troubles.append(Trouble(elapsed_s=0.0, what=what))
        cast("IO[bytes]", self._recorder.stdout).close()
        self._recorder.wait()
        return troubles


def _start() -> subprocess.Popen[bytes]:
    """Start the recorder with this Python and this Teho."""
    path = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{_PACKAGE}:{path}" if path else str(_PACKAGE),
    }
    environment.pop(_PROBE, None)
    # In a new session: an interrupt of the kernel does not reach it.
    return subprocess.Popen(
        [sys.executable, "-m", "teho", "record-process"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment, start_new_session=True,
    )  # fmt: skip


def _used(recorder: int) -> dict[str, float]:
    """Return what this process and its children have used of each counter until now."""
    tree = ProcessTree(frozenset({recorder}))
    tree.add(os.getpid(), recorder)
    counters = {name for name in METRICS if METRICS_BY_NAME[name].kind == "counter"}
    return {
        name: float(value)
        for name, value in tree.read().items()
        if name in counters and isinstance(value, (int, float))
    }


def _cpu_s() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
