"""The process of an example's program, with one library on one placement."""

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
from teho.experiment.started import ended_words, last_lines, with_last_message
from teho.units import format_duration

__all__ = ["PROGRAMS", "Worker"]

PROGRAMS = Path(__file__).with_name("programs")
"""Folder of the examples' programs."""
_POLL_S = 0.25
"""Time between two readings of the device while the program works."""
_MOMENT_S = 2.0
"""Time that a process has to end after it closed its output."""


class Worker:
    """A program of `programs/` in the user's Python, limited to a placement.

    Args:
        program: its name.
        library: that it uses.
        placement: cores and GPUs that it sees.
        python: path.
        environment: for the program, without the variables of the placement.
        memory_bytes: that it may use; None: without a limit.

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
                        # With it, a program would not find its own modules.
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
        poll: Callable[[], None] = lambda: None,
    ) -> Iterator[dict[str, Any]]:
        """Give a command and yield the answers: any number of `times`, then another one.

        If the process does not answer, yield `{"at": "gone", "why": "died" or "time", "text":
        reason}`.

        Args:
            command: None for the answer to the request.
            limit_s: time limit for all answers.
            poll: called again and again while the program works.
        """
        until_s = time.monotonic() + limit_s
        if command is not None:
            # If the process has ended, the answer below says so.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._input, msgspec.json.encode(command) + b"\n")
        while True:
            line = self._line(until_s, poll)
            if not line:
                limit = format_duration(limit_s)
                late = f"the program did not answer within the time limit of {limit}"
                yield {"at": "gone", "why": "time", "text": late} if line is None else self._death()
                return
            answer: dict[str, Any] = msgspec.json.decode(line)
            yield answer
            if answer["at"] != "times":
                return

    def _line(self, until_s: float, poll: Callable[[], None]) -> bytes | None:
        """Return the next line; None if the time is over; empty if the output was closed."""
        while b"\n" not in self._unread:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return None
            if select.select([self._output], [], [], min(left_s, _POLL_S))[0]:
                found = os.read(self._output, 1 << 16)
                if not found:
                    return b""
                self._unread += found
            poll()
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _death(self) -> dict[str, Any]:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_MOMENT_S)
        code = self._process.returncode
        text = "the program closed its output" if code is None else ended_words(code)
        lines = last_lines(self._errors)
        return {"at": "gone", "why": "died", "text": with_last_message(text, "".join(lines[-1:]))}

    def end(self) -> None:
        """End the process and all that it started. It may be called several times."""
        if self._output < 0:
            return
        self._output = -1
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._files.close()
