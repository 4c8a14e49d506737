"""Signals that end the waiting for a recorder, after the program has ended."""

from __future__ import annotations

import signal

__all__ = ["ends_waiting"]

_CANCELS = frozenset({signal.SIGTERM, signal.SIGHUP})
_AGAIN_S = 3.0
"""A scheduler that ends a job sends the same signal more than once, within a second: Slurm to the
step, and again through `srun`. Later, a user or a script has sent it, and does not want to wait."""


def ends_waiting(number: int, waited_s: float, *, is_shared: bool, has_others: bool) -> bool:
    """Return whether a signal says that the recorder need not finish.

    Args:
        number: the signal.
        waited_s: time since the program has ended.
        is_shared: whether the recorder serves other tasks of this node too.
        has_others: whether this process controls the recorders of other nodes.
    """
    if is_shared:
        return False
    if number in _CANCELS:
        return not has_others and waited_s >= _AGAIN_S
    return number == signal.SIGINT
