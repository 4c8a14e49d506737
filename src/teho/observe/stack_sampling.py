"""Starts and ends the recorder's child that samples stacks."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping
from functools import partial

from teho.model.live import LineNow
from teho.observe.present_lines import LineQuestions
from teho.process.child import close_descriptors, fork_child, wait_for_exit

__all__ = ["StackSampling"]

_END_S = 5.0
"""The search in the source takes up to 3 s on busy cores, and its lines are written at its end."""


class StackSampling:
    """A child of the recorder that samples stacks, so that it never waits for a driver.

    Args:
        spool: the folder in which the program's probes write.
        cores: the number of cores that the program may use.
    """

    def __init__(self, spool: str, cores: int) -> None:
        self._pid = 0
        with contextlib.ExitStack() as on_failure, contextlib.ExitStack() as of_child:
            try:
                read_end, self._control = os.pipe()
                of_child.callback(os.close, read_end)
                on_failure.callback(os.close, self._control)
                self._urgent, urgent = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
                of_child.callback(os.close, urgent)
                on_failure.callback(os.close, self._urgent)
                self._lines, lines = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                of_child.callback(lines.close)
                on_failure.callback(self._lines.close)
                self._questions = LineQuestions(self._lines)
                self._pid = fork_child(partial(_sample, spool, cores, read_end, urgent, lines))
            except OSError:  # the probes' threads take the samples
                return
            on_failure.pop_all()

    def is_urgent(self) -> bool:
        """Return whether the child has written something since the last call that cannot wait.

        It has, if a process stays in one line of the program: the run may be stuck.
        """
        if not self._pid:
            return False
        try:
            return bool(os.read(self._urgent, 4096))
        except OSError:  # it has not
            return False

    def lines(self, now_s: float) -> Mapping[int, LineNow]:
        """Return where the main threads of the processes are, by their pids, as far as is known.

        The first call has none: it asks for them.

        Args:
            now_s: monotonic time.
        """
        return self._questions.ask(now_s) if self._pid else {}

    def stop(self) -> None:
        """Let the child write its samples and end."""
        if not self._pid:
            return
        with contextlib.suppress(OSError):  # it has ended already
            os.write(self._control, b".")
        os.close(self._control)
        os.close(self._urgent)
        self._lines.close()
        with contextlib.suppress(ChildProcessError):
            if wait_for_exit(self._pid, time.monotonic() + _END_S) is None:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        self._pid = 0


def _sample(spool: str, cores: int, control: int, urgent: int, lines: socket.socket) -> None:
    # Otherwise a file of the recorder would stay open here after the recorder closes it.
    close_descriptors(keep=(control, urgent, lines.fileno()))
    from teho.observe.stack_sampler import StackSampler

    StackSampler(spool, cores, urgent, lines).run(control)
