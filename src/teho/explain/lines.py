"""The time of each line of the user's program, by section of the program."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import sqrt

from teho.explain.where import LOADER_FILES, doing_in
from teho.model.program import Doing, OwnLine, Section
from teho.model.stack import Frame, Seen, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = ["own_lines", "sections_s", "share_interval", "stacks_in"]

_Z = 1.96
"""Number of standard deviations on each side that include 95 % of a normal distribution."""
_EVALUATION = lazy_pattern(
    r"(^|[._])(eval|evaluat\w*|validat\w*|validation_step|test_step|test_epoch|predict)(_|$)"
)
_EVALUATION_FILES = lazy_pattern(r"/loops/evaluation_loop\.py$")
_CHECKS = lazy_pattern(
    r"/sklearn/utils/|/pydantic/|/jsonschema/|/scipy/(_lib|optimize)/|/pandas/|/torch/optim/"
)
"""Files whose functions with such names validate arguments, or evaluate what they minimise."""
_CALLBACK_FILES = lazy_pattern(
    r"transformers/trainer_callback\.py$|/callbacks/|keras/src/callbacks"
)
_CALLBACK = lazy_pattern(
    r"(^|\.)(on_(train|validation|test|step|epoch|batch|fit)_\w+|_call_callback\w*)$"
)


class _Sum:
    """The times of one line in one section."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.own_s = 0.0
        self.total_s = 0.0
        self.own: defaultdict[Doing, float] = defaultdict(float)
        self.total: defaultdict[Doing, float] = defaultdict(float)


_Key = tuple[Section, str, int]


def own_lines(process: WatchedProcess) -> tuple[OwnLine, ...]:
    """Return the lines of the user's program, the line with the most self time first.

    The set-up ends with the first step of the process. After it, a line belongs to the data loader,
    to callbacks or to an evaluation if functions with such names called it.
    """
    sums: dict[_Key, _Sum] = {}
    has_steps = bool(process.progress)
    _add(sums, process, process.stacks, 1.0, in_set_up=False)
    # The stacks of the set-up are among all stacks: move them to their section.
    _add(sums, process, process.set_up, -1.0, in_set_up=False)
    _add(sums, process, process.set_up, 1.0, in_set_up=has_steps)
    parts = [_own_shares(part) for part in process.parts]
    lines = [
        OwnLine(
            section=key[0],
            frame=one.frame,
            own_s=max(0.0, one.own_s),
            total_s=one.total_s,
            doing=_most(one.own if one.own_s > 0 else one.total),
            parts_percent=tuple(shares.get(key[1:], 0.0) for shares in parts),
        )
        for key, one in sums.items()
        if one.total_s > 0
    ]
    return tuple(sorted(lines, key=lambda line: (-line.own_s, -line.total_s)))


def sections_s(process: WatchedProcess) -> dict[Section, float]:
    """Return the whole time of a process by section, most first."""
    found: defaultdict[Section, float] = defaultdict(float)
    for seen in process.stacks:
        found[_section(process, seen)] += seen.wall_s
    for seen in process.set_up:
        found[_section(process, seen)] -= seen.wall_s
        found[Section.SET_UP] += seen.wall_s
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def stacks_in(process: WatchedProcess, section: Section) -> list[Seen]:
    """Return the stacks of a section that is named by functions, such as the evaluation."""
    return [seen for seen in process.stacks if _section(process, seen) is section]


def share_interval(share_percent: float, samples: float) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a sampled share; None without any samples.

    By Wilson's score interval (Wilson 1927), which is also valid near 0 and 100 %.

    Args:
        share_percent: the sampled share.
        samples: the number of all independent samples.
    """
    if samples <= 0:
        return None
    share = min(1.0, max(0.0, share_percent / 100))
    middle = (share + _Z**2 / (2 * samples)) / (1 + _Z**2 / samples)
    variance = share * (1 - share) / samples + (_Z / (2 * samples)) ** 2
    half = _Z / (1 + _Z**2 / samples) * sqrt(variance)
    return 100 * max(0.0, middle - half), 100 * min(1.0, middle + half)


def _add(
    sums: dict[_Key, _Sum],
    process: WatchedProcess,
    stacks: Sequence[Seen],
    weight: float,
    *,
    in_set_up: bool,
) -> None:
    for seen in stacks:
        doing = doing_in(process, seen)
        section = Section.SET_UP if in_set_up else _section(process, seen)
        wall_s = weight * seen.wall_s
        for place, frame in enumerate(_own(seen)):
            one = sums.setdefault((section, frame.file, frame.line), _Sum(frame))
            one.total_s += wall_s
            one.total[doing] += wall_s
            if place == 0:
                one.own_s += wall_s
                one.own[doing] += wall_s


def _own(seen: Seen) -> Iterator[Frame]:
    """Yield each line of the user's program on a stack once, the innermost first."""
    found: set[tuple[str, int]] = set()
    for frame in seen.frames:
        key = frame.file, frame.line
        if key not in found and not is_library(frame.file):
            found.add(key)
            yield frame


def _section(process: WatchedProcess, seen: Seen) -> Section:
    for frame in seen.frames:
        if LOADER_FILES.search(frame.file):
            return Section.LOADER
        if _CALLBACK_FILES.search(frame.file) or _CALLBACK.search(frame.function):
            return Section.CALLBACK
        is_named = _EVALUATION.search(frame.function) and not _CHECKS.search(frame.file)
        if is_named or _EVALUATION_FILES.search(frame.file):
            return Section.EVALUATION
    return Section.LOOP if process.progress else Section.PROGRAM


def _most(sums: dict[Doing, float]) -> Doing:
    return max(sums, key=lambda doing: sums[doing])


def _own_shares(part: Sequence[Seen]) -> dict[tuple[str, int], float]:
    whole_s = sum(seen.wall_s for seen in part)
    shares: defaultdict[tuple[str, int], float] = defaultdict(float)
    for seen in part:
        frame = next(_own(seen), None)
        if frame is not None and whole_s > 0:
            shares[frame.file, frame.line] += 100 * seen.wall_s / whole_s
    return dict(shares)
