"""Computations in extended precision, and programs that look like them."""

from __future__ import annotations

import pytest

from source.test_costly_options import search

SOURCE = """
import numpy as np
REAL = np.longdouble
def series(rng):
    return rng.integers(0, 9, 40).astype(REAL), rng.normal(size=40).astype(REAL)
def arguments(t):
    return np.stack([0.3 + t, 0.7 * t])
def positions(t, factor, table):
    base = arguments(t)
    place = np.zeros_like(t)
    for k in range(40):
        phase = factor[k] * base[0]
        phase = phase + factor[k] * base[1]
        place += {value}
    return place
def main(rng, real):
    factor, table = series(rng)
    hours = np.arange(900).astype({kind})
    short = hours.astype(np.float64)
    print("mean", positions(hours / 24, factor, table).mean())
    {rest}
"""
PLACE = [("train.py:3", "REAL = np.longdouble", [14])]


def lines(value="np.sin(phase)", kind="REAL", rest="pass", active=None):
    source = SOURCE.format(value=value, kind=kind, rest=rest)
    return search(source, active or f"place += {value}").get("extended_precision", [])


@pytest.mark.parametrize(
    "value", ["np.sin(phase)", "2.0 * table[k]", "np.hypot(phase, 1.0)", "np.sum(phase * phase)"]
)
def test_functions_and_sums(value):
    assert lines(value) == PLACE


def test_float64_and_extended_precision_together():
    source = SOURCE.format(value="np.sin(phase)", kind="np.float64", rest="pass")
    found = search(source, "factor[k] * base[0]")
    assert found["extended_precision"][0][2] == [12]


@pytest.mark.parametrize(
    ("rest", "active"),
    [
        # ---- computations with other types ----
        ("x = np.cos(short)", "np.cos(short)"),
                ("x = np.sin(real)", "np.sin(real)"),
        ("x = np.sin(hours.astype(float))", "np.sin(hours.astype(float))"),
        ("x = float(hours[0]) * real", "float(hours[0]) * real"),
        ("x = np.sin(np.asarray(hours, dtype=float))", "np.sin(np.asarray(hours, dtype=float))"),
        ("x = rng.normal(size=9)", "rng.normal(size=9)"),
        # ---- programs that may need the precision ----
        ("print(np.finfo(REAL))", None),
        ("exact = hours", None),
        ("reference = hours", None),
        ("rel_error = hours", None),
        ("import mpmath", None),
        ("print('16 digits')", None),
    ],
)  # fmt: skip
def test_look_alikes(rest, active):
    assert lines(rest=rest, active=active) == []


def test_without_the_type():
    source = SOURCE.replace("np.longdouble", "np.float64")
    assert search(source.format(value="np.sin(phase)", kind="REAL", rest="pass"), "np.sin") == {}
