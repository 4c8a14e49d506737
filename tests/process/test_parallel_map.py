"""Work that is divided among processes."""

from __future__ import annotations

import subprocess
import sys

SHARED = """\
import os, signal, sys, threading
from teho.process.parallel_map import in_child, parallel_map

own = os.getpid()

def square(n):
    if n == 5 and os.getpid() != own:
        os.kill(os.getpid(), signal.SIGKILL)
    return n * n

def fail(n):
    raise ValueError(n)

expected = [n * n for n in range(37)]
os.sched_getaffinity = lambda _: {0, 1}
assert len(set(parallel_map(lambda _: os.getpid(), range(37)))) == 2
assert parallel_map(lambda n: n * n, range(37)) == expected
assert parallel_map(square, range(37)) == expected, "the share of a child that dies"
assert set(parallel_map(lambda _: os.getpid(), range(7))) == {own}, "too few to share"
try:
    parallel_map(fail, range(37))
    sys.exit("no error")
except ValueError as error:
    assert error.args == (0,)
assert in_child(os.getpid)() != own
failing = in_child(lambda: fail(3))
try:
    failing()
    sys.exit("no error of the work in the child")
except ValueError as error:
    assert error.args == (3,)
large = in_child(lambda: bytes(10_000_000))
assert len(large()) == 10_000_000, "more than the buffer of a pipe"
waits = threading.Event()
threading.Thread(target=waits.wait).start()
assert set(parallel_map(lambda _: os.getpid(), range(37))) == {own}, "beside other threads"
assert in_child(os.getpid)() == own, "beside other threads"
waits.set()
"""


def test_work_is_shared_out_among_processes() -> None:
    # In a process of its own: that of the tests may have threads.
    done = subprocess.run(
        [sys.executable, "-c", SHARED], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
