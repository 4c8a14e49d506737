"""Loops that take one event after the other from a heap, and loops that look like them."""

from __future__ import annotations

import pytest

from source.stacks import stack_of
from teho.source.slow_calls.search import find_slow_calls

LOCKS = """
import heapq
from heapq import heappop, heappush
def start(events, now):
    later = now + 9.0
    times = [one[0] for one in events]
    heapq.heappush(events, (later, 0))
def simulate(rows):
    push, pop = heapq.heappush, heapq.heappop
    events = [(0.0, 0)]
    while events:
        now, kind = pop(events)
        if kind == 0:
            start(events, now)
        for row in rows:
            total = row * now
class Yard:
    def run(self, ready):
        while self.queue:
            time, ship = heappop(self.queue)
            self.berth(time, ship)
        while ready:
            oldest = ready.pop()
            oldest.leave()
    def largest(self, ships, best):
        for size in ships:
            heappush(best, size)
            smallest = heappop(best)
    def berth(self, time, ship):
        heappush(self.queue, (time + 1.0, ship))
"""


def found(*stack, source=LOCKS):
    options = find_slow_calls(*stack_of(source, *stack))
    return [one for one in options if one.name == "events_in_turn"]


@pytest.mark.parametrize(
    ("stack", "line"),
    [
        (("pop(events)",), 18),
        (("kind == 0",), 18),
        (("start(events, now)", "now + 9.0"), 18),
        (("start(events, now)", "heapq.heappush(events, (later, 0))"), 18),
        (("heappop(self.queue)",), 26),
        (("self.berth(time, ship)", "time + 1.0"), 26),
    ],
)
def test_events(stack, line):
    (one,) = found(*stack)
    assert one.at.line == line
    assert [one.text for one in one.lines] == [stack[-1]]


@pytest.mark.parametrize(
    "stack",
    [
        # For each event, an inner loop executes the line several times.
        ("row * now",),
        ("start(events, now)", "one[0]"),
        ("oldest.leave()",),
        # The items of the loop are known before.
        ("heappop(best)",),
    ],
)
def test_other_loops(stack):
    assert found(*stack) == []


def test_a_heap_that_gets_no_new_elements():
    pushes = ("heapq.heappush(", "heappush(self", "heappush(best", "heapq.heappush,")
    source = LOCKS
    for one in pushes:
        source = source.replace(one, one.replace("heappush", "heapify"))
    assert found("pop(events)", source=source) == []
