"""Series of many devices, packed."""

from __future__ import annotations

import math
import pickle
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.explain.bin_means import BinMeans, mean_of_devices

NAN = math.nan


def packed(**series: list[float]) -> BinMeans:
    return BinMeans({name: array("d", values) for name, values in series.items()})


def test_it_is_the_mapping_that_it_packs() -> None:
    found = packed(busy=[1.0, 2.5, 0.0], power=[NAN, 7.0, NAN], none=[NAN] * 3)
    expected = {"busy": [1.0, 2.5, 0.0], "power": [None, 7.0, None], "none": [None] * 3}
    assert found == expected
    assert list(found) == list(expected)
    assert len(found) == 3
    assert "busy" in found
    assert "idle" not in found
    assert found.get("idle", []) == []
    with pytest.raises(KeyError):
        found["idle"]
    assert pickle.loads(pickle.dumps([found, found]))[1] == expected


def test_a_list_that_was_returned_can_be_changed() -> None:
    found = packed(busy=[1.0, 2.0])
    found["busy"].append(3.0)
    assert found["busy"] == [1.0, 2.0]


def test_a_device_without_metrics_has_no_series() -> None:
    assert packed() == {}
    assert mean_of_devices([packed(), packed()]) in ({}, None)


@given(
    st.lists(
        st.lists(st.floats(0, 1e12), min_size=6, max_size=6),
        min_size=1,
        max_size=8,
    )
)
def test_the_mean_of_devices_is_the_mean_of_each_bin(lines: list[list[float]]) -> None:
    means = mean_of_devices([packed(busy=line[:3], power=line[3:]) for line in lines])
    assert means is not None
    assert list(means) == ["busy", "power"]
    for place, value in enumerate(means["busy"] + means["power"]):
        expected = math.fsum(line[place] for line in lines) / len(lines)
        # To five digits; very small values have ten decimals.
        assert value == pytest.approx(expected, rel=6e-5, abs=1e-10)


@pytest.mark.parametrize("other", [packed(busy=[1.0, NAN]), packed(power=[1.0, 1.0]), packed()])
def test_with_gaps_or_other_metrics_there_is_no_quick_mean(other: BinMeans) -> None:
    assert mean_of_devices([packed(busy=[1.0, 2.0]), other]) is None
