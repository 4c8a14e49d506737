"""What people type and what they read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho import units
from teho.errors import UnitError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1), ("500ms", 0.5), ("1.5h", 5400), ("1h30m", 5400), ("30d", 2592000),
        ("2w", 1209600),
        ("1:30", 90), ("1:30:00", 5400), ("2-01:00:00", 176400), ("10 min", 600),
        (".5s", 0.5), ("1d 2h", 93600),
    ],
)  # fmt: skip
def test_durations_that_people_type(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "fast", "1x", "1h30", "-1s", "1 2", "s", "1::2", "nan", "inf", "1e3s", "٣s"]
)
def test_a_duration_that_is_none_names_what_was_typed(text: str) -> None:
    with pytest.raises(UnitError) as error:
        units.parse_duration(text, "--every")
    assert "--every" in str(error.value)
    assert "expected" in str(error.value) or "nothing" in str(error.value)


@pytest.mark.parametrize("text", ["2", "0", " 10 ", "1.5"])
def test_a_number_without_a_unit_is_seconds_to_schedulers_only(text: str) -> None:
    number = text.strip()
    with pytest.raises(
        UnitError, match=rf"'{text}' has no unit; expected a unit, such as {number}s"
    ):
        units.parse_duration(text, "--older-than")
    assert units.parse_duration(text, bare_is_s=True) == float(text)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1), ("1K", 1024), ("64G", 64 * 2**30), ("30GiB", 30 * 2**30), ("30GB", 30 * 10**9),
        ("1.5TiB", 3 * 2**39), ("512MiB", 2**29), ("2 gib", 2**31), ("100B", 100),
    ],
)  # fmt: skip
def test_sizes_that_people_type(text: str, amount: int) -> None:
    assert units.parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "G", "1X", "1GiBs", "-1G", "1,5G", "0x10"])
def test_a_size_that_is_none(text: str) -> None:
    with pytest.raises(UnitError, match="--mem"):
        units.parse_bytes(text, "--mem")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 ms"), (0.0007, "0.7 ms"), (0.00994, "9.9 ms"), (0.00996, "10 ms"),
        (0.0204, "20 ms"), (0.9999, "1.0 s"), (59.94, "59.9 s"), (59.96, "1 min"),
        (61, "1 min 1 s"), (3599.6, "1 h"), (7190, "2 h"), (7169, "1 h 59 min"), (7199, "2 h"),
        (86400, "1 d"), (86399, "1 d"), (100000, "1 d 4 h"), (-61, "-1 min 1 s"),
    ],
)  # fmt: skip
def test_durations_read_at_a_glance(seconds: float, text: str) -> None:
    assert units.format_duration(seconds) == text


@given(st.floats(0, 1e8))
def test_a_written_duration_is_near_what_it_says(seconds: float) -> None:
    written = units.format_duration(seconds)
    back = units.parse_duration(written)
    assert back == pytest.approx(seconds, rel=0.05, abs=0.0006)
    assert not any(f" {carry}" in f" {written}" for carry in ("60 min", "24 h", "60 s", "60.0 s"))


@given(st.integers(0, 10**7))
def test_the_clock_form_comes_back(seconds: int) -> None:
    written = units.format_clock(seconds)
    assert units.parse_duration(written) == seconds


@given(st.integers(0, 2**59))
def test_a_written_size_is_near_what_it_says(amount: int) -> None:
    written = units.format_bytes(amount)
    assert units.parse_bytes(written.replace(",", "")) == pytest.approx(amount, rel=0.006)
    assert "e+" not in written


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (4096, "bytes", "4.00 KiB"), (17.9e9, "bytes", "16.7 GiB"),
        (1023.99 * 2**20, "bytes", "1.00 GiB"),
        (2**21, "bytes/s", "2.00 MiB/s"), (12, "J", "12.0 J"), (167904, "J", "46.6 Wh"),
        (5e6, "J", "1.39 kWh"), (0.04, "%", "0.0 %"), (99.6, "%", "100 %"), (250.4, "W", "250 W"),
        (3, "", "3"), (float("nan"), "W", "not a number"), (1500, "MHz", "1,500 MHz"),
        (3.35e12, "B/s", "3.35 TB/s"), (549e9, "B/s", "549 GB/s"),
        (989.4e12, "FLOP/s", "989 TFLOP/s"),
        (999.5e9, "FLOP/s", "1.00 TFLOP/s"), (999.4e9, "FLOP/s", "999 GFLOP/s"),
        (0.25e12, "FLOP/s", "250 GFLOP/s"), (0, "FLOP/s", "0.00 FLOP/s"),
        (2e21, "B/s", "2,000 EB/s"), (14.3, "steps/s", "14.3 steps/s"), (1, "steps/s", "1 step/s"),
    ],
)  # fmt: skip
def test_quantities_carry_their_unit(value: float, unit: str, text: str) -> None:
    assert units.format_quantity(value, unit) == text


def test_conversion_for_showing() -> None:
    assert units.convert(2**31, "bytes", "GiB") == 2
    assert units.convert(7200, "J", "Wh") == 2
    assert units.convert(5, "W", "") == 5
    with pytest.raises(KeyError):
        units.convert(5, "W", "GiB")


def test_what_is_small_is_not_written_as_zero() -> None:
    assert units.format_quantity(0.00018, "EUR") == "0.0002 EUR"
    assert units.format_quantity(0.006, "EUR") == "0.01 EUR"
    assert units.format_quantity(0.0, "EUR") == "0 EUR"


@given(st.floats(1e-12, 1e6))
def test_no_number_is_written_as_a_power_or_as_nothing(value: float) -> None:
    for text in (units.format_count(value), units.format_pace(value)):
        assert float(text.replace(",", "")) != 0
        assert "e" not in text
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.5, abs=0.005)
