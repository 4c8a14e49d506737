"""A control group of this test's own, whose processes the kernel kills when memory runs out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["EAT", "has_memory_groups", "memory_group"]

EAT = "import time; a = [bytearray(b'x' * 20_000_000) for _ in range(50) if not time.sleep(0.05)]"
"""A program that takes 1 GB within 3 s, if it may."""


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """Make a memory cgroup, and yield the file that a process writes its pid to, to be in it.

    Skips the test where none can be made.
    """
    group, limit = _place()
    try:
        group.mkdir()
        (group / limit).write_text(str(limit_bytes))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no cgroup with a memory limit can be made here: {error}")
    try:
        yield group / "cgroup.procs"
    finally:
        end_s = time.monotonic() + 10
        while True:
            try:
                group.rmdir()
            except OSError:  # its last process is about to go
                assert time.monotonic() < end_s
                time.sleep(0.1)
            else:
                break


def has_memory_groups() -> bool:
    """Return whether a memory cgroup can be made here."""
    group, _ = _place()
    try:
        group.mkdir()
    except OSError:
        return False
    group.rmdir()
    return True


def _place() -> tuple[Path, str]:
    name = f"teho-test-{os.getpid()}"
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return Path(f"/sys/fs/cgroup/memory{path}") / name, "memory.limit_in_bytes"
    # Version 2: no group that has processes may have others below it, but the first one.
    return Path("/sys/fs/cgroup") / name, "memory.max"
