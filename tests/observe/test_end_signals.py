"""Which signals end the waiting for a recorder."""

from __future__ import annotations

import signal

import pytest

from teho.observe.end_signals import ends_waiting


@pytest.mark.parametrize(
    ("number", "waited_s", "is_shared", "has_others", "ends"),
    [
        (signal.SIGTERM, 0.04, False, False, False),  # the scheduler repeats it
        (signal.SIGHUP, 1.0, False, False, False),
        (signal.SIGTERM, 3.1, False, False, True),  # a user does not want to wait
        (signal.SIGHUP, 3.1, False, False, True),
        (signal.SIGTERM, 9.0, False, True, False),  # other nodes have to finish
        (signal.SIGINT, 0.04, False, False, True),  # a second Ctrl-C
        (signal.SIGINT, 0.04, False, True, True),
        (signal.SIGINT, 9.0, True, False, False),  # other tasks use the recorder
        (signal.SIGTERM, 9.0, True, False, False),
        (signal.SIGCHLD, 9.0, False, False, False),
    ],
)
def test_signals(
    number: int, waited_s: float, is_shared: bool, has_others: bool, ends: bool
) -> None:
    assert ends_waiting(number, waited_s, is_shared=is_shared, has_others=has_others) is ends
