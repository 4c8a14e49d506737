"""The line that only the slowest rank executes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.explain.activities import Activity, main_activity
from teho.explain.where import BACKWARD, doing_in, place_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, is_library

__all__ = ["RankExcess", "excess_of"]

_MOST = 0.5
_MODEL = "torch/nn/modules/module.py"


class RankExcess(NamedTuple):
    """A line on which only one rank spends time."""

    frame: Frame
    share_percent: float
    """Share of the rank's time."""
    evaluates: bool
    """Whether most of it applies a model, none of it is a backward pass, and all ranks apply models
    elsewhere."""
    saves: bool
    """Whether most of it saves."""
    activity: Activity | None
    """The known activity that most of it belongs to."""


def excess_of(busiest: MainProcess, others: Sequence[MainProcess]) -> RankExcess | None:
    """Return the outermost line that only one rank executes, with the most time; None if none.

    The line is on no stack of the other ranks. The time of the rank in communication does not
    count.
    """
    elsewhere = {
        (frame.file, frame.line)
        for main in others
        for seen in main.process.stacks
        for frame in _program_frames(seen)
    }
    found: defaultdict[tuple[str, int], list[tuple[Frame, Seen]]] = defaultdict(list)
    trains_elsewhere = False
    for seen in busiest.process.stacks:
        if doing_in(busiest.process, seen) is Doing.COMMUNICATING:
            continue
        frames = reversed(tuple(_program_frames(seen)))
        outer = next((one for one in frames if (one.file, one.line) not in elsewhere), None)
        if outer is not None:
            found[outer.file, outer.line].append((outer, seen))
        trains_elsewhere |= outer is None and _applies_model(seen)
    if not found:
        return None
    longest = max(found.values(), key=lambda pairs: sum(seen.wall_s for _, seen in pairs))
    stacks = [seen for _, seen in longest]
    whole_s = sum(seen.wall_s for seen in stacks)
    saving_s = sum(
        seen.wall_s for seen in stacks if doing_in(busiest.process, seen) is Doing.SAVING
    )
    known = main_activity(stacks)
    return RankExcess(
        frame=longest[0][0],
        share_percent=100 * whole_s / busiest.process.wall_s,
        # If each rank has its own part of a model, the line may be a part of the training.
        evaluates=trains_elsewhere and _evaluates(stacks),
        saves=saving_s >= _MOST * whole_s,
        activity=known[0].activity if known is not None and known[1] >= _MOST else None,
    )


def _evaluates(stacks: Sequence[Seen]) -> bool:
    if any(BACKWARD.search(place_of(frame)) for seen in stacks for frame in seen.frames):
        return False
    in_model_s = sum(seen.wall_s for seen in stacks if _applies_model(seen))
    return in_model_s >= _MOST * sum(seen.wall_s for seen in stacks)


def _applies_model(seen: Seen) -> bool:
    return any(_MODEL in frame.file for frame in seen.frames)


def _program_frames(seen: Seen) -> Iterator[Frame]:
    return (frame for frame in seen.own_frames if not is_library(frame.file))
