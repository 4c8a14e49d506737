"""Which of many figures stand out, held against a witness of its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.explain.outliers import outlier_scores
from teho.explain.policy import load_policy
from teho.explain.shared_thresholds import OUTLIERS
from teho.units import GIB

LIMITS = load_policy().thresholds[OUTLIERS]


def odd(values, unit):
    return [
        place for place, score in enumerate(outlier_scores(values, unit, LIMITS)) if abs(score) > 1
    ]


@pytest.mark.parametrize(
    ("values", "unit", "places"),
    [
        ([93.0, 91.0, 94.0, 12.0], "%", [3]),
        ([0.0, 90.0, 92.0, 91.0, 0.0], "%", [0, 4]),
        # Noise among figures that are alike to the digit is under the floor.
        ([93.0] * 10 + [84.0], "%", []),
        ([93.0] * 10 + [82.9], "%", [10]),
        ([500.0] * 5 + [401.0], "W", []),
        ([500.0] * 5 + [399.0], "W", [5]),
        ([0.0, 0.1, 0.0, 0.9], "cores", []),
        ([0.0, 0.1, 0.0, 1.1], "cores", [3]),
        ([0.0] * 5 + [0.9 * GIB], "bytes", []),
        ([0.0] * 5 + [1.1 * GIB], "bytes", [5]),
        ([20.0] * 5 + [29.0], "s", []),
        ([20.0] * 5 + [31.0], "s", [5]),
        # Wide spread: 50 points of 90 are nothing odd there.
        ([10.0, 30.0, 50.0, 70.0, 90.0], "%", []),
        ([], "%", []),
        ([None, None], "%", []),
        ([None, 90.0, 91.0, 10.0], "%", [3]),
    ],
)
def test_what_is_an_outlier(values, unit, places):
    assert odd(values, unit) == places


def test_below_is_negative_and_above_positive():
    scores = outlier_scores([50.0, 50.0, 50.0, 10.0, 90.0], "%", LIMITS)
    assert scores[3] < -1
    assert scores[4] > 1
    assert scores[:3] == [0, 0, 0]


NUMBERS = st.floats(0, 1e6)


@given(NUMBERS, NUMBERS, st.sampled_from(["%", "W", "bytes", "cores", "s"]))
def test_of_two_neither_is_an_outlier(one, other, unit):
    assert odd([one, other], unit) == []


@given(st.lists(NUMBERS, min_size=3, max_size=60))
def test_score_is_the_modified_z_score_over_its_limit_or_less(values):
    array = np.array(values)
    distance = array - np.median(array)
    mad = np.median(np.abs(distance))
    scores = np.array(outlier_scores(values, "%", LIMITS))
    assert np.all(np.abs(scores) <= np.abs(distance) / 10 + 1e-9)
    if mad > 1e-6:
        z_scores = 0.6745 * distance / mad
        assert np.all(np.abs(scores) <= np.abs(z_scores) / 3.5 + 1e-9)
        either = np.minimum(np.abs(z_scores) / 3.5, np.abs(distance) / 10)
        assert np.allclose(np.abs(scores), either)


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.randoms())
def test_order_does_not_matter(values, random):
    before = dict(zip(values, outlier_scores(values, "W", LIMITS), strict=True))
    shuffled = list(values)
    random.shuffle(shuffled)
    after = outlier_scores(shuffled, "W", LIMITS)
    assert [before[value] for value in shuffled] == pytest.approx(after)


def test_fewer_than_half_never_make_the_others_odd():
    values = [90.0] * 33 + [10.0] * 31
    assert set(odd(values, "%")) == set(range(33, 64))
