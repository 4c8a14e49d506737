"""The recorder's child that reads stacks: its start and its end."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings

__all__ = ["StackSampling"]

_END_S = 2.0


class StackSampling:
    """A process beside the recorder: a look must not wait for a driver, nor a driver for it.

    Args:
        spool: the folder in which the program's probes write.
        cores: that the program may use.
    """

    def __init__(self, spool: str, cores: int) -> None:
        self._pid = 0
        try:
            read_end, self._control = os.pipe()
        except OSError:
            return
        try:
            with warnings.catch_warnings():
                # The recorder's other threads only wait for signals.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:  # the probe's own threads look, as they do until we are there
            os.close(self._control)
            os.close(read_end)
            return
        if self._pid == 0:
            _sample_and_exit(spool, cores, read_end)
        os.close(read_end)

    def stop(self) -> None:
        """Have it write what it has, and end."""
        if not self._pid:
            return
        with contextlib.suppress(OSError):  # it has ended already
            os.write(self._control, b".")
        os.close(self._control)
        until_s = time.monotonic() + _END_S
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > until_s:
                    os.kill(self._pid, signal.SIGKILL)
                    os.waitpid(self._pid, 0)
                    break
                time.sleep(0.001)
        self._pid = 0


def _sample_and_exit(spool: str, cores: int, control: int) -> None:
    status = 1
    try:
        # What the recorder has open must close when the recorder closes it.
        for descriptor in [int(entry.name) for entry in os.scandir("/proc/self/fd")]:
            if descriptor > 2 and descriptor != control:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        from teho.observe.stack_sampler import StackSampler

        StackSampler(spool, cores).run(control)
        status = 0
    finally:
        os._exit(status)
