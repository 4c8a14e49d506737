"""The memory of a device over one step, by the phase that allocated it, for the picture."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from teho.model.trace_memory import MemoryBand, MemoryPhase, MemoryPicture
from teho.profile.allocations import CPU, device_of
from teho.profile.load import Loaded
from teho.profile.memory import PHASES, Peak
from teho.profile.phases import Phases
from teho.profile.spans import Span

__all__ = ["memory_picture"]

_Amounts = Counter[MemoryPhase]


def memory_picture(
    loaded: Loaded, peaks: Sequence[Peak], phases: Phases, device: int, window: Span, bins: int
) -> MemoryPicture | None:
    """Return the highest amount of memory in each of equal parts of a step; None: not recorded.

    Args:
        loaded: the whole trace.
        peaks: of all devices.
        phases: of the trace.
        device: number of the GPU.
        window: start and end of the step.
        bins: number of parts.
    """
    for peak in peaks:
        kind, number = device_of(peak.device)
        if kind != CPU and number == device:
            rows = list(_highest(_amounts(loaded, peak, phases, window), window, bins))
            top = max(sum(row.values()) for row in rows)
            most = {phase: max(row[phase] for row in rows) for phase in PHASES}
            return MemoryPicture(
                peak_bytes=top,
                bands=tuple(
                    MemoryBand(
                        phase=phase, peak_bytes=amount,
                        shares=[round(row[phase] / top, 3) for row in rows],
                    )
                    for phase, amount in most.items()
                    if amount
                ),
            ) if top else None  # fmt: skip
    return None


def _amounts(
    loaded: Loaded, peak: Peak, phases: Phases, window: Span
) -> Iterator[tuple[int, _Amounts]]:
    """Yield the start of the step and the time of each event in it, and what is allocated then."""
    events, threads = peak.events, list(loaded.allocations)
    first, last = bisect_left(events.times, window[0]), bisect_right(events.times, window[1])
    alive: dict[int, int] = {}
    known: _Amounts = Counter()
    allocated_in: dict[int, MemoryPhase] = {}

    def phase_of(place: int) -> MemoryPhase:
        return phases.at(threads[events.threads[place]], events.times[place])

    def now(level: int) -> _Amounts:
        return Counter({**known, "before": max(level - sum(known.values()), 0)})

    for place in range(first):
        if events.sizes[place] > 0:
            alive[events.addresses[place]] = place
        else:
            alive.pop(events.addresses[place], None)
    for place in alive.values():
        allocated_in[place] = phase_of(place)
        known[allocated_in[place]] += events.sizes[place]
    yield window[0], now(peak.level_before(first))
    for place in range(first, last):
        gone = alive.pop(events.addresses[place], None)
        if gone is not None:
            known[allocated_in.pop(gone)] -= events.sizes[gone]
        if events.sizes[place] > 0:
            alive[events.addresses[place]] = place
            allocated_in[place] = phase_of(place)
            known[allocated_in[place]] += events.sizes[place]
        yield events.times[place], now(peak.levels[place])


def _highest(
    amounts: Iterator[tuple[int, _Amounts]], window: Span, bins: int
) -> Iterator[_Amounts]:
    """Yield the amounts at the highest moment of each part of the step."""
    start, end = window
    width = (end - start) / bins
    _, last = next(amounts)
    highest, done = last, 0
    for moment, amount in amounts:
        part = min(int((moment - start) / width), bins - 1)
        while done < part:
            yield highest
            highest, done = last, done + 1
        last = amount
        if sum(amount.values()) > sum(highest.values()):
            highest = amount
    yield highest
    for _ in range(done + 1, bins):
        yield last
