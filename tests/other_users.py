"""Work that a test does as another real user. Only root can become another user."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.compute
import pyarrow.parquet  # noqa: F401 - another user may not read the library of this Python
import pytest

ALICE, BOB, EVE = 5, 9, 8
"""Users that each Debian has: games, news, mail."""
root = pytest.mark.skipif(os.geteuid() != 0, reason="to become other users needs root")


def as_user(user: int, groups: Sequence[int], work: Callable[[], Any]) -> Any:
    """Do some work as another real user, in a process of its own."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups(list(groups))
        os.setgid(user)
        os.setuid(user)
        os.umask(0o002)
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - the parent raises it
            result = error
        with os.fdopen(write_end, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    result = pickle.loads(data)
    if isinstance(result, Exception):
        raise result
    return result
