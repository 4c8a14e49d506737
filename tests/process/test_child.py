"""Forked children: what went wrong in one, and which descriptors it keeps."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Callable

import pytest

from teho.process.child import Child, detach_streams, fork_child, wait_for_exit


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (lambda: None, ""),
        (lambda: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left", "x")), "No space"),
        (lambda: {}["x"], "KeyError('x')"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by SIGKILL"),
        (lambda: os._exit(3), "exit code 3"),
    ],
)
def test_a_child_says_what_went_wrong(work: Callable[[], object], problem: str) -> None:
    child = Child(work)
    said = child.join()
    assert child.ended()
    assert problem in said
    assert bool(said) == bool(problem)


def test_an_exception_ends_a_child_and_not_its_parent() -> None:
    def fail() -> None:
        raise ValueError("in the child")

    status = wait_for_exit(fork_child(fail), time.monotonic() + 30)
    assert status is not None
    assert os.waitstatus_to_exitcode(status) == 1


def test_a_child_that_continues_is_not_waited_for() -> None:
    pid = fork_child(signal.pause)
    try:
        assert wait_for_exit(pid, time.monotonic() + 0.01) is None
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_detached_child_keeps_only_what_it_needs() -> None:
    kept, write_kept = os.pipe()
    closed, write_closed = os.pipe()
    pid = fork_child(lambda: (detach_streams(keep=(write_kept,)), signal.pause()))
    try:
        os.close(write_closed)
        assert os.read(closed, 1) == b"", "the child has closed its end too"
        os.close(write_kept)
        os.set_blocking(kept, False)
        with pytest.raises(BlockingIOError):
            os.read(kept, 1)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(kept)
        os.close(closed)
