"""The pace of a program, from the times of its steps."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.experiment.pace import FEWEST_STEPS, pace_of


def ends(*durations_s: float, began_s: float = 100.0) -> list[float]:
    return list(accumulate(durations_s, initial=began_s))[1:]


def test_warm_up_is_left_out() -> None:
    # Compiled in the first second, then a queue that had filled, then what it can do.
    times_s = ends(*[1.0] * 3, *[0.01] * 16, *[0.1] * 80)
    pace = pace_of(times_s, [], 5.0)
    assert pace
    assert pace.is_whole
    assert pace.steps_per_s == pytest.approx(10, rel=0.03)


def test_bursts_of_several_workers_are_a_steady_pace() -> None:
    # Four batches come at once, then nothing for long.
    times_s = ends(*[0.001, 0.001, 0.001, 0.397] * 20)
    pace = pace_of(times_s, [], 5.0)
    assert pace
    assert pace.steps >= 60
    assert pace.steps_per_s == pytest.approx(10, rel=0.1)


def test_whole_epochs_count_if_they_end_within_the_window() -> None:
    # An epoch of 20 steps of 0.05 s begins with 1 s in which its workers start.
    epoch = [1.05, *[0.05] * 19]
    times_s = ends(*epoch * 6)
    epochs_s = [at_s - 0.05 for at_s in times_s[::20]]
    pace = pace_of(times_s, epochs_s, 5.0)
    assert pace
    assert pace.is_whole
    assert pace.steps % 20 == 0
    assert pace.steps_per_s == pytest.approx(10, rel=1e-6)


def test_the_end_of_an_epoch_is_awaited_for_a_while_only() -> None:
    times_s = ends(*[0.1] * 60)
    epochs_s = [times_s[20]]
    assert not pace_of(times_s, epochs_s, 5.0).is_whole
    longer_s = ends(*[0.1] * 170)
    assert pace_of(longer_s, [longer_s[20]], 5.0).is_whole


def test_few_steps_are_not_enough_however_long_they_take() -> None:
    slow_s = ends(*[2.0] * (FEWEST_STEPS - 2))
    assert not pace_of(slow_s, [], 5.0).is_whole
    assert pace_of(ends(*[2.0] * (2 * FEWEST_STEPS)), [], 5.0).is_whole


@pytest.mark.parametrize("times_s", [[], [5.0], [5.0, 5.0]])
def test_fewer_than_two_steps_have_no_pace(times_s: list[float]) -> None:
    assert pace_of(times_s, [], 5.0) is None


@given(
    st.lists(st.floats(1e-6, 10), min_size=2, max_size=200),
    st.lists(st.integers(0, 199), max_size=8),
)
def test_it_never_counts_more_than_there_is(durations_s: list[float], epochs: list[int]) -> None:
    times_s = ends(*durations_s)
    epochs_s = sorted({times_s[place] for place in epochs if place < len(times_s)})
    pace = pace_of(times_s, epochs_s, 5.0)
    assert pace
    assert 0 < pace.steps < len(times_s)
    assert times_s[0] <= pace.from_s < pace.until_s <= times_s[-1]
