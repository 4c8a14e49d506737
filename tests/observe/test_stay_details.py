"""How a child process of a process ended, from /proc."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from support import wait_for
from teho.observe.stay_details import _dead_children, death_of

PARENT = """
import os, signal, sys, time
def die(): os.kill(os.getpid(), signal.SIGKILL)
for ending in (die, lambda: os._exit(3), lambda: os._exit(0)):
    pid = os.fork()
    if pid == 0:
        ending()
    print(pid, flush=True)
living = os.fork()
if living == 0:
    time.sleep(60)
    os._exit(0)
print(living, flush=True)
sys.stdin.read()
os.kill(living, signal.SIGKILL)
"""


@pytest.fixture
def parent() -> Iterator[tuple[int, list[int]]]:
    """Start a process with three children that have ended, and one that lives."""
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    yield process.pid, [int(process.stdout.readline()) for _ in range(4)]
    process.communicate(timeout=20)


def test_children_that_have_ended_are_found_with_their_status(
    parent: tuple[int, list[int]],
) -> None:
    pid, (killed, failed, ended, living) = parent
    wait_for(lambda: None not in [death_of(one) for one in (killed, failed, ended)])
    found = dict(_dead_children(pid, "/proc"))
    assert set(found) == {killed, failed, ended}
    assert os.waitstatus_to_exitcode(found[killed]) == -signal.SIGKILL
    assert os.waitstatus_to_exitcode(found[failed]) == 3
    assert os.waitstatus_to_exitcode(found[ended]) == 0
    assert death_of(living) is None


def test_a_process_that_no_longer_exists_has_no_status() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    time.sleep(0.01)
    assert death_of(child.pid) is None
    assert _dead_children(child.pid, "/proc") == []
