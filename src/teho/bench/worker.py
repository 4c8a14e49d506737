"""A library on a placement: the process of an example's program, and the talk with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from teho.errors import InputError
from teho.experiment.placement import Placement
from teho.units import format_duration

__all__ = ["PROGRAMS", "Worker"]

PROGRAMS = Path(__file__).with_name("programs")
"""Where the examples' programs lie."""
_LOOK_S = 0.25
"""How often the device is looked at while an answer is awaited."""
_MOMENT_S = 2.0
"""For which a process that has closed its output may take to end."""


class Worker:
    """One program of `programs/`, in the user's Python, with no more than a placement to use.

    Args:
        program: its name.
        library: that it uses.
        placement: cores and GPUs that it sees.
        python: path.
        environment: that it is started with, but for what the placement sets.
        memory_bytes: that it may take; None: what there is.

    Raises:
        InputError: this Python does not start.
    """

    def __init__(
        self,
        program: str,
        library: str,
        placement: Placement,
        python: str,
        environment: Mapping[str, str],
        memory_bytes: int | None,
    ) -> None:
        self.library = library
        self.placement = placement
        request = {
            "library": library,
            "device": "gpu" if placement.gpus else "cpu",
            "cores": placement.cores,
            "memory_bytes": memory_bytes,
        }
        self._unread = b""
        with contextlib.ExitStack() as stack:
            self._errors = stack.enter_context(tempfile.TemporaryFile())
            try:
                self._process = subprocess.Popen(
                    [python, PROGRAMS / f"{program}.py", msgspec.json.encode(request).decode()],
                    env=placement.environment(
                        # With it, a program would not find what lies beside it.
                        {key: environment[key] for key in environment if key != "PYTHONSAFEPATH"}
                    ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._errors,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                raise InputError(
                    f"--python {python}: {error.strerror}", "a Python that starts"
                ) from None
            self._files = stack.pop_all()
        assert self._process.stdin and self._process.stdout  # noqa: S101, PT018 - both are pipes
        self._input = self._files.enter_context(self._process.stdin).fileno()
        self._output = self._files.enter_context(self._process.stdout).fileno()

    @property
    def name(self) -> str:
        """Library and placement: `torch on cpu:1`."""
        return f"{self.library} on {self.placement.name}"

    def ask(
        self,
        command: Mapping[str, Any] | None,
        limit_s: float,
        look: Callable[[], None] = lambda: None,
    ) -> Iterator[dict[str, Any]]:
        """Give a command and yield the answers to it; the last one is the first but `times`.

        If the process answers no more, and never will, that is `{"at": "gone", "why": "died" or
        "time", "text": why}`.

        Args:
            command: None for the answer to the request.
            limit_s: after which the process is ended.
            look: called now and then while it works.
        """
        until_s = time.monotonic() + limit_s
        if command is not None:
            # Who is gone already says so below.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._input, msgspec.json.encode(command) + b"\n")
        while True:
            line = self._line(until_s, look)
            if not line:
                late = f"no answer for {format_duration(limit_s)}, which is all that was left"
                yield {"at": "gone", "why": "time", "text": late} if line is None else self._death()
                return
            answer: dict[str, Any] = msgspec.json.decode(line)
            yield answer
            if answer["at"] != "times":
                return

    def _line(self, until_s: float, look: Callable[[], None]) -> bytes | None:
        """Return the next line; None if there is none in time, nothing if there never is."""
        while b"\n" not in self._unread:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return None
            if select.select([self._output], [], [], min(left_s, _LOOK_S))[0]:
                found = os.read(self._output, 1 << 16)
                if not found:
                    return b""
                self._unread += found
            look()
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _death(self) -> dict[str, Any]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT_S)
        code = self._process.returncode
        if code == -signal.SIGKILL:
            text = "it was killed (SIGKILL): mostly that is for memory"
        elif code is not None and code < 0:
            text = f"it was ended by {signal.Signals(-code).name}"
        else:
            text = f"it ended with exit code {code}"
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - 4096))
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return {"at": "gone", "why": "died", "text": f"{text}: {lines[-1]}" if lines else text}

    def end(self) -> None:
        """End it and all that it started; more than once does no harm."""
        if self._output < 0:
            return
        self._output = -1
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._files.close()
