"""How long a running program still needs, if one of its libraries knows the number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

from teho.explain.pace import recent_pace
from teho.model.missing import Missing, Reason
from teho.model.watched import Progress, Total, WatchedProcess

__all__ = ["TimeLeft", "time_left"]

_NOT_KNOWN = Missing(
    Reason.UNRECORDED,
    "the total number of steps is not known. Teho reads it from the Trainer of Transformers or of "
    "PyTorch Lightning, from Keras, and from the outermost progress bar of tqdm if this bar does "
    "not show one epoch only",
)
_TOO_EARLY = Missing(Reason.UNRECORDED, "the program has made steps for less than a minute")
_NO_STEP = Missing(Reason.UNRECORDED, "no step ended in the last minute")


class TimeLeft(NamedTuple):
    """The remaining time of a program."""

    total: Total
    """What was done at the newest step, and by which library this is known."""
    left_s: float
    """From the newest step on, at the pace of the last minute."""
    steady_left_s: float
    """The same at the pace of the whole run, which has all pauses so far."""

    @property
    def least_s(self) -> float:
        """The shorter one of the two times."""
        return min(self.left_s, self.steady_left_s)


def time_left(process: WatchedProcess) -> Union[TimeLeft, Missing]:
    """Return how long a process still needs for its steps, or why this is not known."""
    last = process.progress[-1] if process.progress else None
    if last is None or last.total is None:
        return _NOT_KNOWN
    steady = last.steps_per_s
    recent = recent_pace(process)
    if recent is None or steady is None:
        return _TOO_EARLY
    if not recent:
        return _NO_STEP
    steps = _steps_left(process.progress, last.total)
    if steps is None:
        return _TOO_EARLY
    return TimeLeft(last.total, steps / recent, steps / steady)


def _steps_left(progress: Sequence[Progress], total: Total) -> float | None:
    """Return the remaining steps; None if the work so far is too little to tell.

    The library may count epochs, or continue from a checkpoint: the number of steps for each of
    its units is that of the work which was done while the steps were counted.
    """
    known = [
        (one.steps, one.total.done)
        for one in progress
        if one.total is not None
        and (one.total.known_by, one.total.total) == (total.known_by, total.total)
    ]
    first_steps, first_done = known[0]
    if first_done == 0:
        first_steps = 0  # the first epoch began with the first step
    # Within an epoch, the number of epochs does not change: its last change is exact.
    steps, done = next(pair for pair in known if pair[1] == total.done)
    if done <= first_done or steps <= first_steps:
        return None
    per_unit = (steps - first_steps) / (done - first_done)
    return max(0.0, (total.total - done) * per_unit - (progress[-1].steps - steps))
