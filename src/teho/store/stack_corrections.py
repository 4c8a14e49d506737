"""Corrects the stack samples of a process with what the kernel counted and other samples found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from teho.model.stack import Frame, Seen, State
from teho.patterns import lazy_pattern
from teho.store.slices import Slice, changed, entries, split

__all__ = ["corrected"]

_RUNNING = frozenset({State.RUNNING, State.MOVED})
_STANDARD_ERRORS = 2.0
"""A share that differs from the kernel's by more than this does not differ by chance."""
_HALVINGS = 30
_LEAST_WAITING = 0.1
"""Share of the running time at a line: if a thread waits less there, samples are not late."""
_LEAST_RUNNING = 0.1
"""Share of the running time: a line with less shows little about changes of the core."""
_LEAST_QUEUED = 0.02
"""Share of the time in which a thread could run: less is not shown."""
_CALL = lazy_pattern(r"[(@]")
"""Found in the text of a call, or of a product of matrices."""

_Line = tuple[str, int]
"""File and line number."""


def corrected(slices: Sequence[Slice], stayed: Counter[Frame]) -> list[Slice]:
    """Return the slices of a process after all corrections.

    Args:
        slices: the samples as they were taken.
        stayed: innermost place -> how much more often the thread stayed there than it continued.
    """
    with_reasons = _with_reasons(slices)
    return _with_native_code(_without_late_samples(_with_kernel_shares(with_reasons)), stayed)


def _line_of(seen: Seen) -> _Line:
    return (seen.frames[0].file, seen.frames[0].line) if seen.frames else ("", 0)


def _waited_s(one: Slice) -> float:
    return sum(seen.wall_s for seen in one.seen if seen.state not in _RUNNING)


def _by_line(
    slices: Sequence[Slice],
) -> tuple[defaultdict[_Line, float], defaultdict[_Line, dict[State, float]]]:
    """Return how long the thread could run at each line, and how long it waited, by reason."""
    running: defaultdict[_Line, float] = defaultdict(float)
    waits: defaultdict[_Line, dict[State, float]] = defaultdict(dict)
    for seen in entries(slices):
        line = _line_of(seen)
        if seen.state in _RUNNING:
            running[line] += seen.wall_s
        else:
            waits[line][seen.state] = waits[line].get(seen.state, 0.0) + seen.wall_s
    return running, waits


def _with_reasons(slices: Sequence[Slice]) -> list[Slice]:
    """Give each wait without a known reason the reasons of the other waits of its line.

    If a thread got a core while its stack was read, there are two explanations. Either it had
    waited, or another thread had used its core. If it rarely waits at this line, the second one
    is assumed.
    """
    running, reasons = _by_line(slices)

    def with_reason(one: Seen) -> Iterable[Seen]:
        line = _line_of(one)
        waits = reasons[line]
        waited_s = sum(waits.values())
        known = {state: s for state, s in waits.items() if state is not State.WAITING}
        known_s = waited_s - waits.get(State.WAITING, 0.0)
        if one.state is not State.WAITING or not waited_s:
            return (one,)
        if waited_s <= _LEAST_WAITING * running[line]:
            return split(one, {State.MOVED: 1.0})
        if known_s > 0:
            return split(one, {state: s / known_s for state, s in known.items()})
        return (one,)

    return changed(slices, with_reason)


def _with_kernel_shares(slices: Sequence[Slice]) -> list[Slice]:
    """Lower the weight of waits so that their share is not higher than the kernel's.

    If other processes use all cores, a sample comes sooner while the thread waits, because the
    thread then does not use its core. Waits are then sampled too often. The kernel counts how
    long the thread could run. The odds of waiting are lowered by the same factor in all slices,
    and each slice keeps its time.
    """
    known = [one for one in slices if one.ran_s > 0]
    whole_s = sum(one.until_s - one.from_s for one in known)
    samples = sum(seen.samples for seen in entries(slices))
    parts = [(_waited_s(one), sum(seen.wall_s for seen in one.seen)) for one in slices]
    waited_s, seen_s = (sum(column) for column in zip(*parts, strict=True)) if parts else (0.0, 0.0)
    if whole_s <= 0 or not 0 < waited_s < seen_s:
        return list(slices)
    could_run = min(1.0, sum(one.ran_s + one.queued_s for one in known) / whole_s)
    share = waited_s / seen_s
    by_chance = _STANDARD_ERRORS * (share * (1 - share) / samples) ** 0.5
    if share - (1 - could_run) <= by_chance:
        return list(slices)

    def waits_s(odds: float) -> float:
        """Return how long the thread waited if the odds of waiting are multiplied by this."""
        return sum(
            whole * odds * part / (odds * part + whole - part) for part, whole in parts if part
        )

    least, most = 0.0, 1.0
    for _ in range(_HALVINGS):
        odds = (least + most) / 2
        least, most = (odds, most) if waits_s(odds) < seen_s * (1 - could_run) else (least, odds)

    def weighted(one: Slice, part: float, whole: float) -> list[Slice]:
        rest = whole / (most * part + whole - part) if whole else 1.0
        return changed(
            [one],
            lambda seen: split(seen, {seen.state: rest if seen.state in _RUNNING else most * rest}),
        )

    return [new for one, part in zip(slices, parts, strict=True) for new in weighted(one, *part)]


def _without_late_samples(slices: Sequence[Slice]) -> list[Slice]:
    """Count samples that came just after a wait as part of this wait.

    A sampler needs about 0.05 ms to wake up before it reads the stack. A running thread is
    stopped meanwhile, but a waiting thread may wake up. It is then found at the same line, or at
    a later line on another core, because the sampler uses its core. The kernel counts how long
    the thread could run. The samples that exceed this time were waits. They are distributed in
    proportion over the lines where the thread waits, and over its time on other cores, unless
    the thread changed the core without a wait.
    """
    known = [one for one in slices if one.ran_s > 0]
    whole_s = sum(one.until_s - one.from_s for one in known)
    if whole_s <= 0:
        return _on_one_core(slices)
    could_run = sum(one.ran_s + one.queued_s for one in known) / whole_s
    running, waits = _by_line(slices)
    waited_s = {line: sum(states.values()) for line, states in waits.items()}
    late_s = sum(running.values()) * (1 - could_run) - sum(waited_s.values()) * could_run
    lines = {line for line, s in waited_s.items() if s > _LEAST_WAITING * running[line]}
    moved = _moved_s(slices, lines)
    woken = _woken_shares(moved, running)
    elsewhere_s = sum(moved[line] * part for line, part in woken.items())
    at_waits_s = sum(running[line] for line in lines) + (elsewhere_s if lines else 0.0)
    if late_s <= 0 or at_waits_s <= 0:
        return _on_one_core(slices)
    share = min(1.0, late_s / at_waits_s)

    def without_late(one: Seen) -> Iterable[Seen]:
        line = _line_of(one)
        if one.state in _RUNNING and line in lines:
            shares = {state: share * s / waited_s[line] for state, s in waits[line].items()}
            return split(one, {State.RUNNING: 1 - share, **shares})
        if one.state is State.MOVED:
            return split(one, {State.RUNNING: 1 - share * woken[line]})
        return (one,)

    found = changed(slices, without_late)
    # The time on other cores is added to all waits in proportion.
    more = 1 + share * elsewhere_s / sum(map(_waited_s, found)) if lines else 1.0
    return changed(
        found,
        lambda seen: split(seen, {seen.state: 1.0 if seen.state is State.RUNNING else more}),
    )


def _moved_s(slices: Sequence[Slice], but: Collection[_Line]) -> dict[_Line, float]:
    """Return how long the thread ran on another core than the expected one, by line."""
    found: defaultdict[_Line, float] = defaultdict(float)
    for seen in entries(slices):
        if seen.state in _RUNNING and _line_of(seen) not in but:
            found[_line_of(seen)] += seen.wall_s * (seen.state is State.MOVED)
    return dict(found)


def _woken_shares(
    moved_s: Mapping[_Line, float], running_s: Mapping[_Line, float]
) -> dict[_Line, float]:
    """Return the share of the time on other cores that came after a wait, by line.

    A thread also changes its core without a wait, equally often at each line. The line where
    this is rarest shows how often.
    """
    least_s = _LEAST_RUNNING * sum(running_s[line] for line in moved_s)
    large = [line for line in moved_s if running_s[line] >= least_s > 0]
    # A single line cannot be compared with another one.
    by_itself = min(moved_s[one] / running_s[one] for one in large) if len(large) > 1 else 0.0
    return {
        line: max(0.0, 1 - by_itself * running_s[line] / s) if s else 0.0
        for line, s in moved_s.items()
    }


def _on_one_core(slices: Sequence[Slice]) -> list[Slice]:
    """Return slices in which running on another core is the state `running` as well."""
    return changed(
        slices,
        lambda seen: split(seen, {State.RUNNING if seen.state is State.MOVED else seen.state: 1.0}),
    )


def _with_native_code(slices: Sequence[Slice], stayed: Counter[Frame]) -> list[Slice]:
    """Divide the running time into Python code, native code, and waits for a core.

    Separate samples found out whether a place is a long call. A call that ends just after the
    sample looks like Python, and Python code without a core looks like a call. So the majority
    of the samples counts. A sample cannot distinguish a thread that computes from one that waits
    for a core. The kernel counts how long it waited.
    """
    lines: Counter[_Line] = Counter()
    for frame, balance in stayed.items():
        lines[frame.file, frame.line] += balance
    queued = _queued_shares(slices)

    def is_call(frame: Frame) -> bool:
        if frame in stayed:
            return stayed[frame] > 0
        key = frame.file, frame.line
        return lines[key] > 0 if key in lines else _CALL.search(frame.text) is not None

    def divided(one: Seen) -> Iterable[Seen]:
        if one.state is not State.RUNNING:
            return (one,)
        is_native = not one.frames or is_call(one.frames[0])
        share = queued.get(_line_of(one), 0.0)
        state = State.NATIVE if is_native else State.PYTHON
        return split(one, {state: 1 - share, State.CORE: share})

    return changed(slices, divided)


def _queued_shares(slices: Sequence[Slice]) -> dict[_Line, float]:
    """Return the share of its runnable time at each line in which a thread had no core.

    If a thread mostly waits at a line, it waits for a core there after each wait. The rest of
    the time without a core is distributed over all other lines in proportion.
    """
    queued_s, ran_s = sum(one.queued_s for one in slices), sum(one.ran_s for one in slices)
    share = queued_s / (queued_s + ran_s) if queued_s > 0 else 0.0
    if share < _LEAST_QUEUED:
        return {}
    runnable: defaultdict[_Line, float] = defaultdict(float)
    waiting: defaultdict[_Line, float] = defaultdict(float)
    for one in entries(slices):
        times = runnable if one.state is State.RUNNING else waiting
        times[_line_of(one)] += one.wall_s
    left_s = share * sum(runnable.values())
    after_s = sum(s for line, s in runnable.items() if waiting[line] > s)
    after_waits = min(1.0, left_s / after_s) if after_s else 0.0
    others_s = sum(runnable.values()) - after_s
    others = min(1.0, max(0.0, left_s - after_s) / others_s) if others_s else 0.0
    return {line: after_waits if waiting[line] > s else others for line, s in runnable.items()}
