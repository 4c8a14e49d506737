"""Starts and ends the recorder's child that samples stacks."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import partial

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
        self._urgent = -1
        try:
            read_end, self._control = os.pipe()
        except OSError:
            return
        try:
            self._urgent, urgent = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            os.close(self._control)
            os.close(read_end)
            return
        try:
            self._pid = fork_child(partial(_sample, spool, cores, read_end, urgent))
        except OSError:  # the probes' threads take the samples
            os.close(self._control)
            os.close(self._urgent)
        os.close(read_end)
        os.close(urgent)

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

    def stop(self) -> None:
        """Let the child write its samples and end."""
        if not self._pid:
            return
        with contextlib.suppress(OSError):  # it has ended already
            os.write(self._control, b".")
        os.close(self._control)
        os.close(self._urgent)
        with contextlib.suppress(ChildProcessError):
            if wait_for_exit(self._pid, time.monotonic() + _END_S) is None:
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        self._pid = 0


def _sample(spool: str, cores: int, control: int, urgent: int) -> None:
    # Otherwise a file of the recorder would stay open here after the recorder closes it.
    close_descriptors(keep=(control, urgent))
    from teho.observe.stack_sampler import StackSampler

    StackSampler(spool, cores, urgent).run(control)
